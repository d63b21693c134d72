import type { Credential } from '../credential.ts'
import { type Connections, refusalOf } from '../transport/index.ts'

const unauthorized = 401
/** More of a refusal's body is not worth keeping. */
const maxKept = 64 * 1024

type Method = (...values: unknown[]) => unknown
type Handler = Readonly<Record<string, Method | undefined>>

/**
 * Stands between undici and the handler of a request. The first answer goes through, unless it is a 401 that
 * a new credential may cure: that one is kept until it is known whether there is a new credential. Handlers of
 * both kinds pass: those with `onHeaders` and those with `onResponseStart`.
 */
export class UndiciReplay {
  /** The credential for the second attempt; undefined if the first answer stands. */
  readonly renewed: Promise<Credential | undefined>
  readonly #connections: Connections
  readonly #handler: Handler
  #decide: (next: Credential | undefined) => void = () => {}

  constructor(connections: Connections, handler: object) {
    this.#connections = connections
    this.#handler = handler as Handler
    this.renewed = new Promise((resolve) => {
      this.#decide = resolve
    })
  }

  /** Tells the handler of a failure before or between attempts. */
  fail(error: unknown): void {
    const { onResponseError, onError } = this.#handler
    if (onResponseError) onResponseError.call(this.#handler, null, error)
    else onError?.call(this.#handler, error)
  }

  /** The handler for the second attempt. */
  last(): object {
    return this.#handler
  }

  /** The handler for the first attempt, with this credential. */
  first(used: Credential | undefined, repeatable: boolean): object {
    if (!used) {
      this.#decide(undefined)
      return this.#handler
    }
    return 'onRequestStart' in this.#handler
      ? this.#modern(used, repeatable)
      : this.#classic(used, repeatable)
  }

  #classic(used: Credential, repeatable: boolean): object {
    const kept = new KeptAnswer()
    const pass = this.#passing(kept)
    return {
      onConnect: pass('onConnect'),
      onResponseStarted: pass('onResponseStarted'),
      onBodySent: pass('onBodySent'),
      onRequestSent: pass('onRequestSent'),
      onUpgrade: this.#ending('onUpgrade', kept),
      onHeaders: (...values: unknown[]) => {
        const [status, raw] = values
        if (status === unauthorized)
          this.#refused(used, kept, { headers: fromRaw(raw), repeatable })
        return pass('onHeaders')(...values)
      },
      onData: pass('onData'),
      onComplete: this.#ending('onComplete', kept),
      onError: this.#ending('onError', kept),
    }
  }

  #modern(used: Credential, repeatable: boolean): object {
    const kept = new KeptAnswer()
    const pass = this.#passing(kept)
    return {
      onRequestStart: pass('onRequestStart'),
      onRequestUpgrade: this.#ending('onRequestUpgrade', kept),
      onResponseStart: (...values: unknown[]) => {
        const [, status, headers] = values
        if (status === unauthorized)
          this.#refused(used, kept, { headers: Object(headers) as object, repeatable })
        return pass('onResponseStart')(...values)
      },
      onResponseData: pass('onResponseData'),
      onResponseEnd: this.#ending('onResponseEnd', kept),
      onResponseError: this.#ending('onResponseError', kept),
    }
  }

  /** Hands a call on, or keeps it while the answer is being kept. */
  #passing(kept: KeptAnswer): (name: string) => Method {
    return (name) =>
      (...values) =>
        kept.add(() => this.#handler[name]?.apply(this.#handler, values), values)
  }

  /** As passing, for the last call of an attempt. */
  #ending(name: string, kept: KeptAnswer): Method {
    const pass = this.#passing(kept)(name)
    return (...values) => {
      const result = pass(...values)
      if (!kept.keeping) this.#decide(undefined)
      kept.end()
      return result
    }
  }

  #refused(
    used: Credential,
    kept: KeptAnswer,
    { headers, repeatable }: { readonly headers: object; readonly repeatable: boolean },
  ): void {
    const refusal = refusalOf({ status: unauthorized, headers: { ...headers } })
    const renewal = this.#connections.source?.renew(used, refusal)
    if (!repeatable) {
      renewal?.catch(() => {}) // the next request fails with it
      return
    }
    kept.keep()
    this.#judge(renewal, kept).catch((error: unknown) => this.fail(error))
  }

  async #judge(renewal: Promise<Credential | undefined> | undefined, kept: KeptAnswer) {
    try {
      const [next] = await Promise.all([renewal, kept.ended])
      if (!next) kept.release()
      this.#decide(next)
    } catch (error) {
      this.#decide(undefined)
      throw error
    }
  }
}

/** The calls of an answer, handed on at once or kept until it is known what becomes of it. */
class KeptAnswer {
  readonly ended: Promise<void>
  keeping = false
  end: () => void = () => {}
  readonly #calls: (() => unknown)[] = []
  #size = 0

  constructor() {
    this.ended = new Promise((resolve) => {
      this.end = resolve
    })
  }

  keep(): void {
    this.keeping = true
  }

  add(call: () => unknown, values: readonly unknown[]): unknown {
    if (!this.keeping) return call()
    this.#size += values.reduce<number>(
      (sum, value) => sum + (value instanceof Uint8Array ? value.length : 0),
      0,
    )
    if (this.#size <= maxKept) this.#calls.push(call)
    return true
  }

  release(): void {
    this.keeping = false
    for (const call of this.#calls) call()
  }
}

/** Names and values in turn, as undici 6 hands them out. */
function fromRaw(raw: unknown): Record<string, string[]> {
  const headers: Record<string, string[]> = Object.create(null)
  const list = Array.isArray(raw) ? raw.map(String) : []
  for (let index = 0; index + 1 < list.length; index += 2) {
    const name = (list[index] ?? '').toLowerCase()
    headers[name] = [...(headers[name] ?? []), list[index + 1] ?? '']
  }
  return headers
}
