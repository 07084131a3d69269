/** Exact draws from uniform bytes: events, uniform symbols, distinct values. docs/report-protocol.md has every step. */

import { Refusal } from "./errors.js";

/**
 * Gives fresh uniform bytes.
 *
 * @param count - how many
 * @param turn - 0, or how often words of this purpose were rejected before; only a keyed stream needs it
 */
export type Bytes = (count: number, turn?: number) => Uint8Array;

const TURNS = 256;
const AT_ONCE = 65_536;

/** The generator of the operating system, by way of crypto.getRandomValues. */
export const systemBytes: Bytes = (count) => {
  const out = new Uint8Array(count);
  for (let start = 0; start < count; start += AT_ONCE) crypto.getRandomValues(out.subarray(start, start + AT_ONCE));
  return out;
};

/** Draw independent events of probability units / 2^64: a 64-bit word, lowest byte first, is less than units. */
export function drawEvents(count: number, units: bigint, bytes: Bytes): boolean[] {
  const view = viewOf(bytes(8 * count));
  return Array.from({ length: count }, (_, place) => view.getBigUint64(8 * place, true) < units);
}

/** Draw one event; see drawEvents. */
export function drawEvent(units: bigint, bytes: Bytes): boolean {
  return drawEvents(1, units, bytes)[0] === true;
}

/**
 * Draw independent uniform symbols 0..size-1, exactly.
 *
 * A word of 1, 2 or 4 bytes, lowest first, gives floor(word / L), L = floor(2^bits / size), and is rejected if that is not
 * below size. Each turn draws a word for every symbol that has none, in their order.
 */
export function drawSymbols(size: number, count: number, bytes: Bytes): number[] {
  const symbols = new Array<number>(count).fill(0);
  if (size === 1) return symbols;
  const width = widthOf(size);
  const span = 2 ** (8 * width);
  const length = (span - (span % size)) / size;
  let open = Array.from(symbols.keys());
  for (let turn = 0; turn < TURNS && open.length > 0; turn += 1) {
    const view = viewOf(bytes(width * open.length, turn));
    const symbolAt = (index: number): number => {
      const at = width * index;
      const word = width === 1 ? view.getUint8(at) : width === 2 ? view.getUint16(at, true) : view.getUint32(at, true);
      return (word - (word % length)) / length;
    };
    open = open.filter((place, index) => {
      symbols[place] = symbolAt(index);
      return symbolAt(index) >= size;
    });
  }
  if (open.length > 0) throw sourceRefusal();
  return symbols;
}

/**
 * Draw distinct values of 0..size-1, uniform among all sequences of that many.
 *
 * A batch of n = count + floor(count^2 / size) + 4 floor(sqrt(count)) + 8 symbols is drawn, and repeats are passed over; a
 * batch with too few distinct ones is drawn anew as a whole.
 */
export function drawDistinct(size: number, count: number, bytes: Bytes): number[] {
  const square = count * count;
  const batch = count + (square - (square % size)) / size + 4 * Math.floor(Math.sqrt(count)) + 8;
  for (let turn = 0; turn < TURNS; turn += 1) {
    const distinct = [...new Set(drawSymbols(size, batch, bytes))];
    if (distinct.length >= count) return distinct.slice(0, count);
  }
  throw sourceRefusal();
}

/** Return the narrowest word, in bytes, of which at most one in 64 is rejected. */
function widthOf(size: number): 1 | 2 | 4 {
  for (const width of [1, 2] as const) {
    const span = 2 ** (8 * width);
    if ((span % size) * 64 <= span) return width;
  }
  return 4;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function sourceRefusal(): Refusal {
  return new Refusal("INTEGRITY", "The source of randomness repeats itself.", "Do not answer on this device.");
}
