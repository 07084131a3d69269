/** Who signed a round: its researcher, whose certificate the study's authority issued. */

import { Refusal, check } from "./errors.js";
import { type Round, fields, parse, roundText } from "./round.js";

/** What a node knows of who may ask it. */
export interface Signers {
  /** Certificate of the study's authority, PEM: ca.pem. */
  readonly authority: string;
  /** Id of the study. */
  readonly study: string;
}

/** A part of a certificate: its kind, its content, and itself with both. */
interface Part {
  readonly kind: number;
  readonly content: Uint8Array;
  readonly whole: Uint8Array;
}

/** What a signature needs of a certificate. */
interface Certificate {
  /** What its issuer signed. */
  readonly signed: Uint8Array;
  readonly signature: Uint8Array;
  readonly key: Uint8Array;
  /** Milliseconds since 1970, first and last. */
  readonly valid: readonly [number, number];
  readonly names: readonly string[];
}

const CURVE = { name: "ECDSA", namedCurve: "P-256" } as const;
const HASH = { name: "ECDSA", hash: "SHA-256" } as const;
const HALF = 32;
const EXTENSIONS = 0xa3;
const ALTERNATIVE_NAMES = "551d11";
const URI = 0x86;
const OCTETS = 0x04;

/**
 * Refuse a round that its researcher did not sign, under the study's authority.
 *
 * @param answer - of the server: text, signature and certificate
 * @throws Refusal - somebody else signed it, or another text, or a certificate that is not the authority's or has expired
 */
export async function checkSigned(round: Round, answer: string, signers: Signers, now = Date.now()): Promise<void> {
  const { text, signature, certificate } = fields(parse(answer), ["text", "signature", "certificate"], "What is signed");
  const areTexts = typeof text === "string" && typeof signature === "string" && typeof certificate === "string";
  check(areTexts && /^([0-9a-f]{2})+$/.test(signature), "What is signed is not as it must be.");
  check(roundText(text) === round.text, "The researcher signed another round.");
  let isSigned = false;
  try {
    const [authority, signer] = [readCertificate(signers.authority), readCertificate(certificate)];
    const name = `veiltab://${signers.study}/researcher/${round.researcher}`;
    const data = new TextEncoder().encode(`veiltab statement\n${text}`);
    isSigned =
      signer.valid[0] <= now &&
      now <= signer.valid[1] &&
      signer.names.length === 1 &&
      signer.names[0] === name &&
      (await isSignature(authority.key, signer.signature, signer.signed)) &&
      (await isSignature(signer.key, bytesOf(signature), data));
  } catch (error) {
    if (error instanceof Refusal) throw error;
  }
  check(isSigned, `Researcher ${round.researcher} did not sign this round, by the certificates of the study.`);
}

async function isSignature(key: Uint8Array, signature: Uint8Array, data: Uint8Array): Promise<boolean> {
  const known = await crypto.subtle.importKey("spki", Uint8Array.from(key), CURVE, false, ["verify"]);
  return crypto.subtle.verify(HASH, known, Uint8Array.from(plainSignature(signature)), Uint8Array.from(data));
}

/** Return the two numbers of an ECDSA signature in DER, 32 bytes each. */
function plainSignature(signature: Uint8Array): Uint8Array {
  const plain = new Uint8Array(2 * HALF);
  const numbers = partsOf(only(partsOf(signature)).content);
  check(numbers.length === 2, "A signature is not two numbers.");
  numbers.forEach(({ content }, place) => {
    const digits = content.subarray(content.findIndex((byte) => byte !== 0));
    check(digits.length <= HALF, "A number of a signature is too long.");
    plain.set(digits, HALF * (place + 1) - digits.length);
  });
  return plain;
}

/** Read a certificate (RFC 5280) as far as a signature needs it. */
function readCertificate(pem: string): Certificate {
  const found = /^-----BEGIN CERTIFICATE-----\s+([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----\s*$/.exec(pem);
  check(found !== null, "A certificate cannot be read.");
  const data = Uint8Array.from(atob((found[1] ?? "").replace(/\s/g, "")), (one) => one.charCodeAt(0));
  const [signed, , bits] = three(partsOf(only(partsOf(data)).content));
  const facts = partsOf(signed.content);
  const [, , , , validity, , key] = facts;
  check(validity !== undefined && key !== undefined && facts[0]?.kind === 0xa0, "A certificate is not of version 3.");
  const [first, last] = partsOf(validity.content).map(timeOf);
  check(first !== undefined && last !== undefined, "A certificate has no lifetime.");
  const listed = facts.find((one) => one.kind === EXTENSIONS);
  const extensions = listed === undefined ? [] : partsOf(only(partsOf(listed.content)).content);
  return {
    signed: signed.whole,
    signature: bits.content.subarray(1),
    key: key.whole,
    valid: [first, last],
    names: extensions.flatMap(namesOf),
  };
}

/** Return the URIs of an extension, if it is the one of alternative names. */
function namesOf(extension: Part): string[] {
  const [kind, ...rest] = partsOf(extension.content);
  const value = rest.find((one) => one.kind === OCTETS);
  if (kind === undefined || value === undefined || hex(kind.content) !== ALTERNATIVE_NAMES) return [];
  const names = partsOf(only(partsOf(value.content)).content);
  return names.filter((one) => one.kind === URI).map((one) => new TextDecoder("utf-8", { fatal: true }).decode(one.content));
}

/** Return a UTCTime (of 20YY before 2050) or a GeneralizedTime. */
function timeOf(part: Part): number {
  const text = new TextDecoder().decode(part.content);
  const found = /^(\d{2}|\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})Z$/.exec(text);
  check(found !== null, "A certificate has no lifetime.");
  const [, year = "", ...rest] = found;
  const [month = 0, day = 0, hour = 0, minute = 0, second = 0] = rest.map(Number);
  const full = year.length === 4 ? Number(year) : Number(year) + (Number(year) < 50 ? 2000 : 1900);
  return Date.UTC(full, month - 1, day, hour, minute, second);
}

/** Return the parts of DER that lie one after the other. */
function partsOf(data: Uint8Array): Part[] {
  const parts: Part[] = [];
  for (let place = 0; place < data.length; ) {
    const short = data[place + 1] ?? 0;
    const count = short < 0x80 ? 0 : short - 0x80;
    check(count <= 3, "A certificate is too long.");
    let length = count === 0 ? short : 0;
    for (const byte of data.subarray(place + 2, place + 2 + count)) length = 256 * length + byte;
    const [begin, end] = [place + 2 + count, place + 2 + count + length];
    check(end <= data.length, "A certificate is cut short.");
    parts.push({ kind: data[place] ?? 0, content: data.subarray(begin, end), whole: data.subarray(place, end) });
    place = end;
  }
  return parts;
}

function only(parts: readonly Part[]): Part {
  const [one, ...others] = parts;
  check(one !== undefined && others.length === 0, "A certificate is not as it must be.");
  return one;
}

function three(parts: readonly Part[]): readonly [Part, Part, Part] {
  const [one, two, last, ...others] = parts;
  check(one !== undefined && two !== undefined && last !== undefined && others.length === 0, "This is not a certificate.");
  return [one, two, last];
}

function hex(data: Uint8Array): string {
  return Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function bytesOf(digits: string): Uint8Array {
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}
