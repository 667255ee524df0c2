// The glow of many Gaussians: their densities are added on a coarse grid, and the grid becomes a picture. Densities are
// added as floats: thousands of faint 8-bit layers would leave stains.

const REACH = 2.4; // σ, beyond which a cloud adds nothing
const FALL = Float32Array.from({ length: 257 }, (_, k) => Math.exp(-(REACH * REACH * k) / 512) - Math.exp(-(REACH * REACH) / 2));

// grid (wide × tall) += weight · exp(−½ distance²) of an ellipse at x, y with half-axes a, b, turned by an angle
const addCloud = (grid, wide, tall, x, y, a, b, turn, weight) => {
  const c = Math.cos(turn), s = Math.sin(turn), p = 1 / (a * a), q = 1 / (b * b);
  const xx = c * c * p + s * s * q, xy = c * s * (p - q), yy = s * s * p + c * c * q;
  const across = REACH * Math.hypot(a * c, b * s), down = REACH * Math.hypot(a * s, b * c);
  const top = Math.max(0, Math.floor(y - down)), bottom = Math.min(tall - 1, Math.ceil(y + down));
  const left = Math.max(0, Math.floor(x - across)), right = Math.min(wide - 1, Math.ceil(x + across));
  const scale = 256 / (REACH * REACH);
  for (let row = top; row <= bottom; row += 1) {
    const dy = row + 0.5 - y;
    for (let column = left; column <= right; column += 1) {
      const dx = column + 0.5 - x;
      const far = (xx * dx * dx + 2 * xy * dx * dy + yy * dy * dy) * scale;
      if (far < 256) grid[row * wide + column] += weight * FALL[far | 0];
    }
  }
};

// two grids in two colours as one picture: opacity follows the sum, the colour mixes by share
const paintGlow = (canvas, grids, wide, tall, colours) => {
  [canvas.width, canvas.height] = [wide, tall];
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const made = pen.createImageData(wide, tall);
  const [one, two] = colours.map((colour) => {
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    return pen.getImageData(0, 0, 1, 1).data; // any CSS colour as numbers
  });
  for (let k = 0; k < wide * tall; k += 1) {
    const total = grids[0][k] + grids[1][k];
    if (!total) continue;
    const share = grids[0][k] / total;
    for (let channel = 0; channel < 3; channel += 1) made.data[4 * k + channel] = share * one[channel] + (1 - share) * two[channel];
    made.data[4 * k + 3] = 255 * 0.85 * (1 - Math.exp(-total));
  }
  pen.putImageData(made, 0, 0);
};
