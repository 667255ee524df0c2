// The map: images and captions as points, their uncertainty as ellipses. On a canvas, because there are thousands.

if (byId("map-canvas")) onApproach("map", () => {
  const { map, names, captions, of, sigma, right } = read("data");
  const known = new Set(read("data").queries.map((query) => `${query.way}-${query.item}`));
  const canvas = byId("map-canvas"), paper = canvas.parentElement, card = byId("map-card"), pen = canvas.getContext("2d");
  const n = map.x.length;
  const boxes = { 0: byId("map-images"), 1: byId("map-captions") };
  const clouds = byId("map-clouds");
  const view = { scale: 1, x: 0, y: 0 }; // zoom, and the centre of the view in steps of the map
  const wide = Math.max(1, ...map.x), tall = Math.max(1, ...map.y);
  const text = (k) => (map.kind[k] ? captions[map.item[k]] : names[map.item[k]]);
  const owner = (k) => (map.kind[k] ? of[map.item[k]] : map.item[k]);
  const family = new Map();
  for (let k = 0; k < n; k += 1) family.set(owner(k), [...(family.get(owner(k)) ?? []), k]);
  let selected = -1, faded = null, colours = null, size = [0, 0], waiting = false;

  // the glow is kept until the view changes, so that pointing at items is fast
  const widest = map.shape ? map.shape[0].reduce((a, b) => Math.max(a, b), 0) : 0;
  const COARSE = 4, sky = el("canvas");
  let stale = true;
  // so faint that all clouds of one kind together would cover about half the paper
  const density = [0, 1].map((kind) => {
    let area = 0;
    if (map.shape) for (let k = 0; k < n; k += 1) if (map.kind[k] === kind) area += 2 * Math.PI * map.shape[0][k] * map.shape[1][k];
    return Math.min(0.35, (0.55 * wide * tall) / Math.max(area, 1));
  });

  const base = () => Math.min((size[0] - 48) / wide, (size[1] - 48) / tall);
  const px = (k) => (map.x[k] - wide / 2 - view.x) * base() * view.scale + size[0] / 2;
  const py = (k) => size[1] / 2 - (map.y[k] - tall / 2 - view.y) * base() * view.scale;
  const visible = (k) => boxes[map.kind[k]].checked;

  const recolour = () => {
    const style = getComputedStyle(document.documentElement);
    colours = ["--s0", "--s1", "--ink"].map((name) => style.getPropertyValue(name).trim());
    redraw();
  };

  const ellipse = (k) => {
    const [a, b, turn] = map.shape.map((values) => values[k]);
    const scale = base() * view.scale;
    pen.beginPath();
    pen.ellipse(px(k), py(k), Math.max(a * scale, 0.5), Math.max(b * scale, 0.5), (-turn * Math.PI) / 180, 0, 2 * Math.PI);
  };
  const paintSky = (order) => {
    stale = false;
    const [across, down] = size.map((side) => Math.max(1, Math.ceil(side / COARSE)));
    const grids = [new Float32Array(across * down), new Float32Array(across * down)], scale = (base() * view.scale) / COARSE;
    for (const k of order) {
      if (faded && !faded[k]) continue;
      const [a, b, turn] = map.shape.map((values) => values[k]), kind = map.kind[k];
      addCloud(grids[kind], across, down, px(k) / COARSE, py(k) / COARSE, Math.max(a * scale, 0.6), Math.max(b * scale, 0.6), (-turn * Math.PI) / 180, density[kind]);
    }
    paintGlow(sky, grids, across, down, colours.slice(0, 2));
  };
  const dot = (k, radius) => {
    pen.beginPath();
    if (map.kind[k]) pen.arc(px(k), py(k), radius * 0.8, 0, 2 * Math.PI);
    else pen.rect(px(k) - radius, py(k) - radius, 2 * radius, 2 * radius);
  };

  const paint = () => {
    waiting = false;
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, ...size);
    const margin = map.shape ? REACH * widest * base() * view.scale : 10;
    const near = (k) => px(k) > -margin && px(k) < size[0] + margin && py(k) > -margin && py(k) < size[1] + margin;
    const order = [];
    for (const kind of [1, 0]) for (let k = 0; k < n; k += 1) if (map.kind[k] === kind && visible(k) && near(k)) order.push(k);
    const strong = (k) => !faded || faded[k];
    if (map.shape && clouds.checked) {
      if (stale) paintSky(order);
      pen.globalAlpha = 1;
      pen.drawImage(sky, 0, 0, sky.width * COARSE, sky.height * COARSE);
    }
    const radius = Math.min(4, 1.5 + 0.6 * Math.sqrt(view.scale) + (n < 800 ? 0.8 : 0));
    for (const k of order) {
      pen.globalAlpha = strong(k) ? (map.kind[k] ? 0.6 : 0.9) : 0.08;
      pen.fillStyle = colours[map.kind[k]];
      dot(k, radius);
      pen.fill();
    }
    if (selected >= 0) highlight(radius);
    pen.globalAlpha = 1;
  };

  const highlight = (radius) => {
    pen.globalAlpha = 0.55;
    pen.strokeStyle = colours[2];
    pen.lineWidth = 1;
    const members = family.get(owner(selected));
    const image = members.find((k) => !map.kind[k]);
    for (const k of members) {
      if (k === image || image === undefined) continue;
      pen.beginPath();
      pen.moveTo(px(image), py(image));
      pen.lineTo(px(k), py(k));
      pen.stroke();
    }
    pen.globalAlpha = 1;
    for (const k of members) {
      if (map.shape && (!clouds || clouds.checked)) {
        pen.strokeStyle = colours[map.kind[k]];
        pen.lineWidth = k === selected ? 1.8 : 0.9;
        ellipse(k);
        pen.stroke();
      }
      pen.fillStyle = colours[map.kind[k]];
      dot(k, radius + (k === selected ? 2.5 : 1));
      pen.fill();
    }
    pen.strokeStyle = colours[2];
    pen.lineWidth = 1.5;
    dot(selected, radius + 3);
    pen.stroke();
  };

  const draw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(paint);
  };

  const redraw = () => {
    stale = true;
    draw();
  };

  const showCard = () => {
    card.hidden = selected < 0;
    if (selected < 0) return;
    const kind = map.kind[selected] ? "captions" : "images", item = map.item[selected];
    const facts = [sigma[kind] ? `σ ${short(sigma[kind][item])}` : null, answers(right[kind][item])].filter(Boolean);
    const query = `${map.kind[selected] ? "t2i" : "i2t"}-${item}`;
    const caption = map.kind[selected] ? selected : family.get(owner(selected)).find((k) => map.kind[k]); // the caption itself, or the image's first
    card.replaceChildren(
      picture(owner(selected)),
      el("p", { class: "words", text: caption === undefined ? "" : `“${captions[map.item[caption]]}”` }, el("small", { text: names[owner(selected)] })),
      el("p", { class: "details", text: facts.join(" · ") }),
    );
    if (known.has(query)) card.append(el("button", { type: "button", "data-open": query, text: "Compare rankings" }));
    card.querySelectorAll(".picture").forEach(fill);
    const left = px(selected) > size[0] / 2, top = py(selected) > size[1] / 2;
    card.dataset.corner = `${top ? "top" : "bottom"}-${left ? "left" : "right"}`;
  };

  const choose = (k) => {
    if (k === selected) return;
    selected = k;
    showCard();
    draw();
  };

  const at = (x, y, reach = 18) => {
    let best = -1, least = reach * reach;
    for (let k = 0; k < n; k += 1) {
      if (!visible(k) || (faded && !faded[k])) continue;
      const apart = (px(k) - x) ** 2 + (py(k) - y) ** 2;
      if (apart < least) [best, least] = [k, apart];
    }
    return best;
  };

  const step = (dx, dy) => {
    if (selected < 0) return choose(at(size[0] / 2, size[1] / 2, Infinity));
    let best = -1, least = Infinity;
    for (let k = 0; k < n; k += 1) {
      if (k === selected || !visible(k) || (faded && !faded[k])) continue;
      const x = px(k) - px(selected), y = py(k) - py(selected);
      const along = x * dx + y * dy, across = Math.abs(x * dy - y * dx);
      if (along <= 0.5 || across > along) continue;
      const cost = along + 2 * across;
      if (cost < least) [best, least] = [k, cost];
    }
    if (best >= 0) choose(best);
  };

  const zoom = (factor, x = size[0] / 2, y = size[1] / 2) => {
    const scale = Math.min(40, Math.max(1, view.scale * factor)), unit = base();
    const ahead = 1 / (unit * view.scale) - 1 / (unit * scale);
    view.x += (x - size[0] / 2) * ahead;
    view.y -= (y - size[1] / 2) * ahead;
    view.scale = scale;
    if (scale === 1) view.x = view.y = 0;
    showCard();
    redraw();
  };

  const resize = () => {
    const ratio = window.devicePixelRatio || 1;
    size = [paper.clientWidth, paper.clientHeight];
    canvas.width = Math.round(size[0] * ratio);
    canvas.height = Math.round(size[1] * ratio);
    stale = true;
    if (colours) paint();
  };

  const filter = () => {
    const wanted = byId("map-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    faded = null;
    if (wanted.length) {
      const hit = (k) => wanted.every((word) => text(k).toLowerCase().includes(word));
      const owners = new Set();
      for (let k = 0; k < n; k += 1) if (hit(k)) owners.add(owner(k));
      faded = Array.from({ length: n }, (_, k) => hit(k) || (!map.kind[k] && owners.has(owner(k))));
    }
    const count = faded ? faded.filter(Boolean).length : 0;
    byId("map-count").textContent = faded ? `${count.toLocaleString("en")} items match, counting images by their captions` : "";
    choose(-1);
    redraw();
  };

  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, y: event.clientY, vx: view.x, vy: view.y, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (held && !held.moved) choose(at(event.offsetX, event.offsetY, event.pointerType === "touch" ? 30 : 18));
    held = null;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (held && view.scale > 1 && Math.hypot(event.clientX - held.x, event.clientY - held.y) > 3) {
      held.moved = true;
      view.x = held.vx - (event.clientX - held.x) / (base() * view.scale);
      view.y = held.vy + (event.clientY - held.y) / (base() * view.scale);
      showCard();
      redraw();
    } else if (!held && event.pointerType !== "touch") {
      const nearest = at(event.offsetX, event.offsetY);
      if (nearest >= 0) choose(nearest);
    }
  });
  canvas.addEventListener("dblclick", (event) => zoom(2, event.offsetX, event.offsetY));
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas) return; // otherwise the wheel scrolls the page
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.25 : 0.8, event.offsetX, event.offsetY);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (moves[event.key]) step(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else if (event.key === "0") zoom(0);
    else if (event.key === "Escape") choose(-1);
    else if (event.key === "Enter") card.querySelector("button")?.click();
    else return;
    event.preventDefault();
  });
  byId("map-in").addEventListener("click", () => zoom(1.6));
  byId("map-out").addEventListener("click", () => zoom(1 / 1.6));
  byId("map-whole").addEventListener("click", () => zoom(0));
  byId("map-filter").addEventListener("input", filter);
  for (const box of [boxes[0], boxes[1], clouds]) box?.addEventListener("change", () => {
    if (selected >= 0 && !visible(selected)) choose(-1);
    redraw();
  });
  addEventListener("recolour", () => {
    recolour();
    paint();
  });
  new ResizeObserver(resize).observe(paper);
  resize();
  recolour();
});
