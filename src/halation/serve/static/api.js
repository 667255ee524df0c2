// The server's endpoints as functions. Every error is a Failure, with a message for you and a kind for the page.

import { sentence } from "./dom.js";

export class Failure extends Error {
  constructor(kind, message, retryAfter = 0) {
    super(message);
    this.kind = kind; // "offline", "token", "busy" or "refused"
    this.retryAfter = retryAfter;
  }
}

const KINDS = { 401: "token", 429: "busy", 503: "busy", 504: "busy" };

async function call(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure("offline", "The server does not answer.");
  }
  if (response.ok) return response;
  let message = `The server answered ${response.status}.`;
  try {
    message = sentence((await response.json()).error) || message;
  } catch {
    // not JSON, perhaps a proxy's page: the status is enough
  }
  throw new Failure(KINDS[response.status] || "refused", message, Number(response.headers.get("retry-after")) || 1);
}

const post = (body) => ({ method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

export const about = async () => (await call("about")).json();

export const list = async (offset, limit) => (await call(`items?offset=${offset}&limit=${limit}`)).json();

export const alike = async (id, k, want, signal) =>
  (await call(`items/${encodeURIComponent(id)}/alike?k=${k}&want=${want}`, { signal })).json();

export const byText = async (text, k, signal) => (await call("search", { ...post({ text, k }), signal })).json();

export const explain = async (text, id, signal) => (await call("explain", { ...post({ text, id }), signal })).json();

export async function byImage(file, k, want, signal) {
  const form = new FormData();
  form.set("image", file, file.name || "picture");
  form.set("k", k);
  form.set("want", want);
  return (await call("search/image", { method: "POST", body: form, signal })).json();
}

export const session = async (token) => call("session", post({ token }));

export const alive = async () => {
  try {
    return (await fetch("health", { cache: "no-store" })).ok;
  } catch {
    return false;
  }
};
