/** Where a node keeps its answers, so that it never draws a second time. */

import { Refusal } from "./errors.js";

/** Texts by key, kept durably before a promise is fulfilled. Keys consist of a-z, 0-9 and hyphens. */
export interface Store {
  /** Return the text of a key, or null. */
  get(key: string): Promise<string | null>;
  /** Keep a text unless the key has one; return the text that the key has now. Of several at once the first one wins. */
  keep(key: string, text: string): Promise<string>;
  /** Replace the text of a key. */
  put(key: string, text: string): Promise<void>;
}

const TEXTS = "texts";

/** A store in the browser: an IndexedDB of the page's origin. It is lost if the person clears the site's data. */
export class BrowserStore implements Store {
  readonly #database: Promise<IDBDatabase>;

  /** @param name - of the database */
  constructor(name = "veiltab-node") {
    const opening = indexedDB.open(name, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(TEXTS);
    this.#database = resultOf(opening, () => opening.result);
  }

  async get(key: string): Promise<string | null> {
    const database = await this.#database;
    const request = database.transaction(TEXTS).objectStore(TEXTS).get(key);
    return resultOf(request, () => textOf(request.result));
  }

  async keep(key: string, text: string): Promise<string> {
    return this.#write((texts, set) => {
      const request = texts.get(key);
      request.onsuccess = () => {
        const earlier = textOf(request.result);
        if (earlier === null) texts.put(text, key);
        set(earlier ?? text);
      };
    });
  }

  async put(key: string, text: string): Promise<void> {
    await this.#write((texts, set) => {
      texts.put(text, key);
      set(text);
    });
  }

  /** Run one transaction; it is on disk before the promise is fulfilled. */
  async #write(work: (texts: IDBObjectStore, set: (text: string) => void) => void): Promise<string> {
    const database = await this.#database;
    return new Promise((fulfil, fail) => {
      const transaction = database.transaction(TEXTS, "readwrite", { durability: "strict" });
      let kept = "";
      transaction.oncomplete = () => fulfil(kept);
      transaction.onabort = () => fail(storageRefusal());
      work(transaction.objectStore(TEXTS), (text) => {
        kept = text;
      });
    });
  }
}

function resultOf<T>(request: IDBRequest, result: () => T): Promise<T> {
  return new Promise((fulfil, fail) => {
    request.onsuccess = () => fulfil(result());
    request.onerror = () => fail(storageRefusal());
  });
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function storageRefusal(): Refusal {
  return new Refusal(
    "UNAVAILABLE",
    "This browser keeps nothing for this page, and nothing was sent.",
    "Allow the page to keep data, or leave the private window.",
  );
}
