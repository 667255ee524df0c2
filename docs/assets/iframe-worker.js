/* A page opened from the disk may not start a worker, which the search box needs. There, and there alone, a hidden frame
   does the worker's work: it runs the same script and passes messages on. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      inner.importScripts = (...urls) =>
        urls.reduce((before, next) => before.then(() => this.load(next)), Promise.resolve());
      this.ready = this.load(new URL(url, document.baseURI).href);
    }
    load(url) {
      return new Promise((resolve, reject) => {
        const inner = this.frame.contentDocument;
        const script = inner.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = reject;
        inner.body.appendChild(script);
      });
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
