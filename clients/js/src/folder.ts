/** For Node: a folder that keeps answers, and requests that trust an authority of their own. */

import { randomBytes } from "node:crypto";
import { link, mkdir, open, readFile, rename, unlink } from "node:fs/promises";
import { Agent, request } from "node:https";
import { join } from "node:path";

import { check } from "./errors.js";
import type { Reply, Send } from "./sending.js";
import type { Store } from "./store.js";

/** A store in a folder: one file a key, which only its owner reads. */
export class FolderStore implements Store {
  readonly #folder: string;

  /** @param folder - of one node; it is made if it is not there */
  constructor(folder: string) {
    this.#folder = folder;
  }

  async get(key: string): Promise<string | null> {
    try {
      return await readFile(this.#path(key), "utf8");
    } catch (error) {
      if (codeOf(error) === "ENOENT") return null;
      throw error;
    }
  }

  async keep(key: string, text: string): Promise<string> {
    const written = await this.#write(text);
    try {
      await link(written, this.#path(key));
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    } finally {
      await unlink(written);
    }
    await this.#sync();
    return readFile(this.#path(key), "utf8");
  }

  async put(key: string, text: string): Promise<void> {
    await rename(await this.#write(text), this.#path(key));
    await this.#sync();
  }

  #path(key: string): string {
    check(/^[a-z0-9-]+$/.test(key), "A key consists of a-z, 0-9 and hyphens.");
    return join(this.#folder, key);
  }

  /** Write a file that nobody sees under its key yet. */
  async #write(text: string): Promise<string> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = join(this.#folder, `.${randomBytes(8).toString("hex")}`);
    const file = await open(path, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    return path;
  }

  async #sync(): Promise<void> {
    const folder = await open(this.#folder);
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }
}

/**
 * Return what sends messages to a server whose certificate an authority of the study signed.
 *
 * @param ca - the authority's certificate, PEM; it is the only one that is trusted
 */
export function sendTrusting(ca: string | Uint8Array): Send {
  const agent = new Agent({ ca: typeof ca === "string" ? ca : Buffer.from(ca), keepAlive: true, maxSockets: 32 });
  return (url, body, seconds) =>
    new Promise<Reply>((fulfil, fail) => {
      const sent = request(url, { agent, method: body === null ? "GET" : "POST", timeout: 1000 * seconds }, (answer) => {
        const parts: Buffer[] = [];
        answer.on("data", (part: Buffer) => parts.push(part));
        answer.on("error", fail);
        answer.on("end", () => {
          if (!answer.complete) fail(new Error("the answer broke off"));
          fulfil({ status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString("utf8") });
        });
      });
      sent.on("timeout", () => sent.destroy(new Error("no answer in time")));
      sent.on("error", fail);
      sent.end(body ?? undefined);
    });
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : null;
}
