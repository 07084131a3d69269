/** The public hash functions of local hashing: ChaCha20 (RFC 8439) under one key for all, with the seed in its nonce. */

import { drawSymbols } from "./draws.js";

const SIGMA = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574];
/** The ASCII text "veiltab olh" as words, lowest byte first; zeros follow. */
const KEY = [0x6c696576, 0x20626174, 0x00686c6f];
const TURN = 2 ** 24;
const ROUNDS = [
  [0, 4, 8, 12],
  [1, 5, 9, 13],
  [2, 6, 10, 14],
  [3, 7, 11, 15],
  [0, 5, 10, 15],
  [1, 6, 11, 12],
  [2, 7, 8, 13],
  [3, 4, 9, 14],
] as const;

/**
 * Return the hash of the values 0..size-1: symbols 0..g-1.
 *
 * @param seed - 8 bytes
 * @param size - number of values
 * @param g - number of symbols
 */
export function hashesOf(seed: Uint8Array, size: number, g: number): number[] {
  const words = new DataView(seed.buffer, seed.byteOffset, seed.byteLength);
  return drawSymbols(g, size, (count, turn = 0) => keyStream(words, turn * TURN, count));
}

/** Return the first bytes of ChaCha20(KEY, counter from 0, nonce = label | seed), words lowest byte first. */
function keyStream(seed: DataView, label: number, count: number): Uint8Array {
  const out = new Uint8Array(Math.ceil(count / 64) * 64);
  const view = new DataView(out.buffer);
  const state = new Uint32Array(16);
  state.set([...SIGMA, ...KEY]);
  state.set([label, seed.getUint32(0, true), seed.getUint32(4, true)], 13);
  for (let block = 0; 64 * block < count; block += 1) {
    state[12] = block;
    const mixed = mix(Uint32Array.from(state));
    mixed.forEach((word, place) => view.setUint32(64 * block + 4 * place, word + at(state, place), true));
  }
  return out.subarray(0, count);
}

/** Do the twenty rounds in place. */
function mix(x: Uint32Array): Uint32Array {
  for (let turn = 0; turn < 10; turn += 1) {
    for (const [a, b, c, d] of ROUNDS) {
      step(x, a, b, d, 16);
      step(x, c, d, b, 12);
      step(x, a, b, d, 8);
      step(x, c, d, b, 7);
    }
  }
  return x;
}

/** x[a] += x[b]; x[d] = (x[d] ^ x[a]) rotated left. */
function step(x: Uint32Array, a: number, b: number, d: number, left: number): void {
  x[a] = at(x, a) + at(x, b);
  const word = at(x, d) ^ at(x, a);
  x[d] = (word << left) | (word >>> (32 - left));
}

function at(words: Uint32Array, place: number): number {
  return words[place] ?? 0;
}
