import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import {
  CommandFailed,
  type Logger,
  SallyportError,
  type SealedValue,
  type SealedValues,
} from '../core/index.ts'
import { KeyExists, RevisionMismatch, type Store } from './store.ts'

/**
 * Where sealed values are in the store. Keys of API objects begin with the name of a group, never
 * with a slash, so that no path, name, selector or continue token of the API leads here.
 */
export const sealedPrefix = '/sallyport/sealed/'

/** A sealed value cannot be decrypted although it was written with this key. */
class SealedValueDamaged extends SallyportError {
  readonly code = 'SEALED_VALUE_DAMAGED'
}

/*
 * Envelope: 0 magic  4 8 bytes key id  12 12 bytes nonce  24 16 bytes tag  40 ciphertext.
 * AES-256-GCM. The store key of the value is authenticated with it, so that no value can be moved
 * to another name.
 */
const magic = Buffer.from('SPS\x01', 'latin1')
const headerLength = 40

/** Whether the store holds a sealed value. */
export const hasSealedValues = (store: Store): boolean =>
  store.range(sealedPrefix, { limit: 1 }).runs.some((run) => run.length > 0)

/** Sealed values in a store, encrypted with a key that is not in it. */
export class SealedStore implements SealedValues {
  readonly #store: Store
  readonly #log: Logger
  readonly #key: Buffer
  readonly #keyId: Buffer

  /** `storeKey`: 32 bytes. */
  constructor(store: Store, storeKey: Buffer, log: Logger) {
    this.#store = store
    this.#log = log
    this.#key = Buffer.from(hkdfSync('sha256', storeKey, '', 'sallyport sealed values 1', 32))
    this.#keyId = createHash('sha256')
      .update('sallyport store key id')
      .update(storeKey)
      .digest()
      .subarray(0, 8)
  }

  /** Throws if a value cannot be decrypted with this key. */
  verify(): void {
    for (const { key, value } of this.#store.range(sealedPrefix).runs.flat()) this.#open(key, value)
  }

  async get(name: string, signal: AbortSignal): Promise<SealedValue | undefined> {
    await this.#store.freshen(signal)
    const record = this.#store.get(keyOf(name))
    return record && { value: this.#open(record.key, record.value), version: record.revision }
  }

  async change(
    name: string,
    change: (present: Buffer | undefined) => Buffer | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    for (;;) {
      const present = await this.get(name, signal)
      const changed = change(present?.value)
      if (changed === undefined) return false
      try {
        const key = keyOf(name)
        const sealed = this.#seal(key, changed)
        if (present) await this.#store.update(key, sealed, present.version)
        else await this.#store.create(key, sealed)
        return true
      } catch (error) {
        if (!(error instanceof RevisionMismatch) && !(error instanceof KeyExists)) throw error
        signal.throwIfAborted()
      }
    }
  }

  watch(name: string, listener: (changed: SealedValue) => void, signal: AbortSignal): void {
    if (signal.aborted) return
    const watched = keyOf(name)
    const subscription = this.#store.watch(watched, this.#store.revision, (events) => {
      for (const { type, record } of events) {
        if (type !== 'put' || record.key !== watched) continue
        try {
          listener({ value: this.#open(record.key, record.value), version: record.revision })
        } catch (err) {
          this.#log.error({ err, name }, 'sealed value cannot be used, keeping the previous one')
        }
      }
    })
    signal.addEventListener('abort', () => subscription.close(), { once: true })
  }

  #seal(key: string, value: Buffer): Buffer {
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce)
    cipher.setAAD(Buffer.concat([magic, this.#keyId, Buffer.from(key)]))
    const body = Buffer.concat([cipher.update(value), cipher.final()])
    return Buffer.concat([magic, this.#keyId, nonce, cipher.getAuthTag(), body])
  }

  #open(key: string, sealed: Buffer): Buffer {
    if (sealed.length < headerLength || sealed.compare(magic, 0, 4, 0, 4) !== 0) {
      throw new SealedValueDamaged(`the stored value ${key} is not a sealed value of this version`)
    }
    if (!sealed.subarray(4, 12).equals(this.#keyId)) {
      throw new CommandFailed(
        'STORE_KEY_MISMATCH',
        `the signing keys in the store (${key}) are encrypted with another key than pki/store-key`,
        { hint: 'restore pki/store-key and the store from one backup' },
      )
    }
    const decipher = createDecipheriv('aes-256-gcm', this.#key, sealed.subarray(12, 24))
    decipher.setAAD(Buffer.concat([magic, this.#keyId, Buffer.from(key)]))
    decipher.setAuthTag(sealed.subarray(24, headerLength))
    try {
      return Buffer.concat([decipher.update(sealed.subarray(headerLength)), decipher.final()])
    } catch {
      throw new SealedValueDamaged(`the stored value ${key} fails its authentication`)
    }
  }
}

const keyOf = (name: string): string => `${sealedPrefix}${name}`
