/** The randomisers, and what a report supports. Every one takes the same steps whatever the value, as far as JavaScript can. */

import { type Bytes, drawDistinct, drawEvent, drawEvents, drawSymbols } from "./draws.js";
import { check } from "./errors.js";
import { hashesOf } from "./hashing.js";
import { UNIT, unitsOf } from "./numbers.js";
import { type Round, fields, never, parse, stratumOf } from "./round.js";

/** The payload of a report: pairs of hexadecimal digits by field, as the server takes them. */
export type Payload =
  | { readonly category: string }
  | { readonly bits: string }
  | { readonly seed: string; readonly symbol: string }
  | { readonly subset: string };

const SEED_BYTES = 8;
const SYMBOL_DIGITS = 8;

/**
 * Toss the coin of a node and randomise its value.
 *
 * The value is randomised whether the node reports or not, so that neither the work nor its duration shows the coin.
 *
 * @param round - checked
 * @param stratum - of the node
 * @param category - of its value, 0..size-1
 * @param bytes - the operating system's, except in tests
 * @returns the payload, or null if the node says nothing
 */
export function decide(round: Round, stratum: string, category: number, bytes: Bytes): Payload | null {
  const isCategory = Number.isInteger(category) && category >= 0 && category < round.size;
  check(isCategory, `The category is not a whole number from 0 to ${round.size - 1}.`, "Give the place of the value.");
  const reports = drawEvent(unitsOf(stratumOf(round, stratum).rate), bytes);
  const payload = randomise(round, category, bytes);
  return reports ? payload : null;
}

function randomise(round: Round, value: number, bytes: Bytes): Payload {
  const { oracle, size } = round;
  switch (oracle.name) {
    case "krr":
      return { category: digits(respond(value, size, oracle.replacement, bytes)) };
    case "oue": {
      const bits = drawEvents(size, oracle.q64, bytes);
      bits[value] = drawEvent(UNIT / 2n, bytes);
      return { bits: hexOf(packBits(bits)) };
    }
    case "olh": {
      const seed = bytes(SEED_BYTES).slice();
      const hashes = hashesOf(seed, size, oracle.g);
      const symbol = respond(hashes[value] ?? 0, oracle.g, oracle.replacement, bytes);
      return { seed: hexOf(seed), symbol: digits(symbol) };
    }
    case "ss": {
      const chosen = drawDistinct(size - 1, oracle.w, bytes).map((other) => other + Number(other >= value));
      const last = chosen[oracle.w - 1] ?? 0;
      chosen[oracle.w - 1] = select(drawEvent(oracle.p64, bytes), value, last);
      const marks = new Uint8Array(size);
      for (const one of chosen) marks[one] = 1;
      return { subset: hexOf(listMarks(marks)) };
    }
    default:
      return never(oracle);
  }
}

/** k-ary randomised response: a uniform symbol with probability replacement / 2^64. */
function respond(symbol: number, cells: number, replacement: bigint, bytes: Bytes): number {
  const isReplaced = drawEvent(replacement, bytes);
  const [noise = 0] = drawSymbols(cells, 1, bytes);
  return select(isReplaced, noise, symbol);
}

/** Return one of two symbols, without a branch. */
function select(first: boolean, a: number, b: number): number {
  return b ^ ((a ^ b) & -Number(first));
}

/** Return the message of a report; its length depends on the round alone. */
export function encode(token: string, stratum: string, payload: Payload): string {
  const inner = Object.entries(payload).map(([name, text]) => `"${name}": "${text}"`);
  return `{"token": "${token}", "stratum": "${stratum}", "report": {${inner.join(", ")}}}`;
}

/**
 * Return the categories that a report supports, in increasing order.
 *
 * @param round - of the report
 * @param body - the message
 * @throws Refusal - no node of the round could have sent it
 */
export function supportOf(round: Round, body: string): number[] {
  const message = fields(parse(body), ["token", "stratum", "report"], "The report");
  const { token, stratum, report } = message;
  check(typeof token === "string" && /^[0-9a-f]{32}$/.test(token), "The token is not 32 hexadecimal digits.");
  check(typeof stratum === "string", "The stratum is not a text.");
  const places = Array.from({ length: round.size }, (_, place) => place);
  const { oracle, size } = round;
  switch (oracle.name) {
    case "krr":
      return [symbolOf(fields(report, ["category"], "The report")["category"], size)];
    case "oue": {
      const bits = bytesOf(fields(report, ["bits"], "The report")["bits"], (size + 7) >> 3);
      const isSet = (place: number): boolean => (((bits[place >> 3] ?? 0) >> (place & 7)) & 1) === 1;
      const beyond = Array.from({ length: 8 * bits.length - size }, (_, extra) => size + extra);
      check(!beyond.some(isSet), "The report has bits beyond its categories.");
      return places.filter(isSet);
    }
    case "olh": {
      const facts = fields(report, ["seed", "symbol"], "The report");
      const seed = bytesOf(facts["seed"], SEED_BYTES);
      const symbol = symbolOf(facts["symbol"], oracle.g);
      const hashes = hashesOf(seed, size, oracle.g);
      return places.filter((place) => hashes[place] === symbol);
    }
    case "ss": {
      const width = size <= 256 ? 1 : 2;
      const data = bytesOf(fields(report, ["subset"], "The report")["subset"], width * oracle.w);
      const at = (place: number): number => (data[width * place] ?? 0) + 256 * (width === 2 ? (data[2 * place + 1] ?? 0) : 0);
      const values = Array.from({ length: oracle.w }, (_, place) => at(place));
      const increases = values.every((value, place) => place === 0 || value > (values[place - 1] ?? size));
      check(increases && (values.at(-1) ?? size) < size, "The report is not a subset in increasing order.");
      return values;
    }
    default:
      return never(oracle);
  }
}

function digits(symbol: number): string {
  return symbol.toString(16).padStart(SYMBOL_DIGITS, "0");
}

/** Category i is bit i mod 8, lowest first, of byte i div 8. */
function packBits(bits: readonly boolean[]): Uint8Array {
  const out = new Uint8Array((bits.length + 7) >> 3);
  bits.forEach((bit, place) => {
    out[place >> 3] = (out[place >> 3] ?? 0) | (Number(bit) << (place & 7));
  });
  return out;
}

/** The marked categories, 1 byte each, or 2, lowest first, above 256 categories. */
function listMarks(marks: Uint8Array): Uint8Array {
  const chosen = Array.from(marks.keys()).filter((place) => marks[place] === 1);
  return marks.length <= 256 ? Uint8Array.from(chosen) : Uint8Array.from(chosen.flatMap((one) => [one & 255, one >> 8]));
}

/** Write bytes as pairs of hexadecimal digits. */
export function hexOf(data: Uint8Array): string {
  return Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function bytesOf(text: unknown, count: number): Uint8Array {
  const isHex = typeof text === "string" && text.length === 2 * count && /^[0-9a-f]*$/.test(text);
  check(isHex, `The payload does not have ${2 * count} hexadecimal digits.`);
  return Uint8Array.from({ length: count }, (_, place) => parseInt(text.slice(2 * place, 2 * place + 2), 16));
}

function symbolOf(text: unknown, size: number): number {
  const symbol = bytesOf(text, SYMBOL_DIGITS / 2).reduce((sum, byte) => 256 * sum + byte, 0);
  check(symbol < size, `The symbol is not one of ${size}.`);
  return symbol;
}
