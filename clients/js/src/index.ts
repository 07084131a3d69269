/** A node of veiltab: it randomises one answer by itself, keeps it, and reports it over HTTPS. */

export { type Invitation, type Means, type Outcome, answerRound, fetchRound, stateOf } from "./answer.js";
export { type Bytes, drawDistinct, drawEvents, drawSymbols, systemBytes } from "./draws.js";
export { Refusal } from "./errors.js";
export { hashesOf } from "./hashing.js";
export { type Payload, decide, encode, supportOf } from "./randomise.js";
export { type Oracle, type Round, type Stratum, readRound } from "./round.js";
export { type Signers, checkSigned } from "./signed.js";
export { type Reply, type Send, type ServerError, sendByFetch } from "./sending.js";
export { BrowserStore, type Store } from "./store.js";
