// An authority, a researcher's certificate of it, and what that researcher signs: by DER that is written by hand.
import { generateKeyPairSync, sign } from "node:crypto";

const der = (kind, ...parts) => {
  const content = Buffer.concat(parts);
  const length = content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 255];
  return Buffer.concat([Buffer.from([kind, ...length]), content]);
};
const pair = () => generateKeyPairSync("ec", { namedCurve: "P-256" });
const pem = (data) => `-----BEGIN CERTIFICATE-----\n${data.toString("base64").replace(/.{64}/g, "$&\n")}\n-----END CERTIFICATE-----\n`;
const time = (year) => der(0x17, Buffer.from(`${String(year).slice(2)}0101000000Z`));
const ALGORITHM = der(0x30, Buffer.from("06082a8648ce3d040302", "hex"));

function certificate(issuer, subject, name, years) {
  const names = der(0x30, der(0x86, Buffer.from(name)));
  const extension = der(0x30, Buffer.from("0603551d11", "hex"), der(0x04, names));
  const facts = der(
    0x30,
    der(0xa0, Buffer.from("020102", "hex")),
    Buffer.from("020101", "hex"),
    ALGORITHM,
    der(0x30),
    der(0x30, ...years.map(time)),
    der(0x30),
    subject.publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, der(0x30, extension)),
  );
  return pem(der(0x30, facts, ALGORITHM, der(0x03, Buffer.from([0]), sign("sha256", facts, issuer.privateKey))));
}

const [own, other, researcher] = [pair(), pair(), pair()];
const YEARS = [2020, 2049];
export const AUTHORITY = certificate(own, own, "veiltab://poll", YEARS);
export const ROSA = "veiltab://poll/researcher/rosa";

/** Return what a server answers of what was signed; the changes are those of a server, or of somebody else. */
export function signedBy({ name = ROSA, issuer = own, years = YEARS, signer = researcher, purpose = "veiltab statement\n" }, text) {
  const signature = sign("sha256", Buffer.from(purpose + text), signer.privateKey).toString("hex");
  return JSON.stringify({ text, signature, certificate: certificate(issuer, researcher, name, years) });
}

/** Return the text that a researcher signs of a round as a server describes it: whole numbers without quotes. */
export function textOf(answer) {
  return JSON.stringify(JSON.parse(answer).round).replace(/"(g|replacement|q64|w|p64)":"(\d+)"/g, '"$1":$2');
}

export const OTHERS = {
  "another authority": { issuer: other },
  "another researcher": { name: "veiltab://poll/researcher/rita" },
  "another study": { name: "veiltab://survey/researcher/rosa" },
  "a curator of the name": { name: "veiltab://poll/curator/rosa" },
  "a certificate that has expired": { years: [2020, 2021] },
  "a certificate of later": { years: [2048, 2049] },
  "another key": { signer: other },
  "another purpose": { purpose: "" },
};
