// Keyed randomness, the same numbers as tiltrm/explore/keys.py: a draw is a function of its key alone.
// Keys are 64-bit integers: BigInt where there are few, two 32-bit halves where there are millions.

const MASK = (1n << 64n) - 1n;
const GOLDEN = 0x9e3779b97f4a7c15n;
const fround = Math.fround;

/** The splitmix64 finaliser. */
export function mix(x) {
  x = ((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  x = ((x ^ (x >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return x ^ (x >> 31n);
}

/** A new key for (key, index), index after index. */
export function derive(key, ...indices) {
  for (const index of indices) key = mix((key + (BigInt(index) + 1n) * GOLDEN) & MASK);
  return key;
}

/** A puzzle's key, from its tokens alone. */
export function puzzleKey(tokens) {
  let sum = 0n;
  tokens.forEach((token, cell) => (sum += derive(mix(BigInt(cell) + 1n), token)));
  return mix(sum & MASK);
}

/** The counters of `count` draws, as high and low halves. */
export function counters(count) {
  const high = new Uint32Array(count), low = new Uint32Array(count);
  for (let k = 0; k < count; k++) {
    const counter = derive(0n, k);
    high[k] = Number(counter >> 32n);
    low[k] = Number(counter & 0xffffffffn);
  }
  return { high, low };
}

/** Uniforms in (0, 1), float64, from the high 32 bits of the hash. */
export function uniforms(key, count) {
  return Array.from({ length: count }, (_, k) => (Number(mix(key ^ derive(0n, k)) >> 32n) + 0.5) * 2 ** -32);
}

/** The high half of a 32 x 32 bit product. */
function highProduct(a, b) {
  const a0 = a & 0xffff, a1 = a >>> 16, b0 = b & 0xffff, b1 = b >>> 16;
  const middle = a1 * b0 + ((a0 * b0) >>> 16);
  const other = a0 * b1 + (middle & 0xffff);
  return a1 * b1 + (middle >>> 16) + (other >>> 16);
}

const TURN = fround(2 * Math.PI * 2 ** -32);

/**
 * Fill `out` from `start` on with scale x standard normals of a key (Box-Muller): first all cosines, then all
 * sines. Every operation is rounded to float32, as torch does it; `count` must be twice the counters.
 */
export function fillNormals(out, start, key, scale, { high: counterHigh, low: counterLow }) {
  const keyHigh = Number(key >> 32n), keyLow = Number(key & 0xffffffffn);
  const pairs = counterHigh.length;
  for (let k = 0; k < pairs; k++) {
    let high = keyHigh ^ counterHigh[k], low = keyLow ^ counterLow[k];
    let shifted = (low >>> 30) | (high << 2); // low half of x >>> 30
    high ^= high >>> 30;
    low ^= shifted;
    let top = highProduct(low, 0x1ce4e5b9) + Math.imul(low, 0xbf58476d) + Math.imul(high, 0x1ce4e5b9);
    low = Math.imul(low, 0x1ce4e5b9);
    high = top | 0;
    shifted = (low >>> 27) | (high << 5);
    high ^= high >>> 27;
    low ^= shifted;
    top = highProduct(low, 0x133111eb) + Math.imul(low, 0x94d049bb) + Math.imul(high, 0x133111eb);
    low = Math.imul(low, 0x133111eb);
    high = top | 0;
    shifted = (low >>> 31) | (high << 1);
    high ^= high >>> 31;
    low ^= shifted;
    const uniform = fround(fround(high >>> 1) + 1) * 2 ** -31; // in (0, 1]
    const radius = fround(Math.sqrt(fround(-2 * fround(Math.log(uniform)))));
    const angle = fround(fround(low >>> 0) * TURN);
    out[start + k] = fround(radius * fround(Math.cos(angle))) * scale;
    out[start + pairs + k] = fround(radius * fround(Math.sin(angle))) * scale;
  }
}
