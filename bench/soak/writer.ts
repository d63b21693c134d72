import { setTimeout as delay } from 'node:timers/promises'
import type { Answer, ApiClient } from './api-client.ts'
import type { ObjectLedger } from './ledger.ts'
import { seenIn } from './seen.ts'

/** Where the objects of the soak live. */
export const collection = '/api/v1/namespaces/soak/configmaps'

/** What all writers count together. */
export interface Tally {
  acknowledged: number
  /** Writes without an answer that turned out to have been made, and not to have been made. */
  madeUnanswered: number
  lostUnanswered: number
  readonly problems: string[]
}

interface Attempt {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: object
  /** Empty for a deletion. */
  readonly serial: string
}

const retryMs = 50
let serials = 0

/** Writes to objects of its own, one write at a time, and keeps account of what must be there. */
export class Writer {
  readonly #client: ApiClient
  readonly #ledgers: readonly ObjectLedger[]
  readonly #tally: Tally

  constructor(client: ApiClient, ledgers: readonly ObjectLedger[], tally: Tally) {
    this.#client = client
    this.#ledgers = ledgers
    this.#tally = tally
  }

  /** Writes until `signal` aborts, and then brings the last write to a known end. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const ledger = this.#ledgers[Math.floor(Math.random() * this.#ledgers.length)]
      if (ledger) await this.#write(ledger)
    }
  }

  async #write(ledger: ObjectLedger): Promise<void> {
    const attempt = attemptOn(ledger)
    try {
      this.#conclude(ledger, attempt, await this.#ask(attempt))
    } catch {
      await this.#findOut(ledger, attempt)
    }
  }

  #ask({ method, path, body }: Attempt): Promise<Answer> {
    return this.#client.ask(method, path, body)
  }

  #conclude(ledger: ObjectLedger, attempt: Attempt, { code, body }: Answer): void {
    if (code === 429 || code >= 500) throw new Error(`answered ${code}`)
    if (code >= 300) {
      const text = JSON.stringify(body).slice(0, 300)
      this.#tally.problems.push(`${attempt.method} ${ledger.name} was answered ${code}: ${text}`)
      throw new Error('refused')
    }
    this.#tally.acknowledged++
    this.#made(ledger, attempt, body)
  }

  #made(ledger: ObjectLedger, attempt: Attempt, object: unknown): void {
    if (attempt.serial === '') {
      ledger.changes.push({ deleted: true })
      ledger.now = undefined
      return
    }
    const seen = seenIn(object)
    if (Number(seen.version) <= Number(ledger.now?.version ?? 0)) {
      this.#tally.problems.push(`${ledger.name}: version ${seen.version} is not a new one`)
    }
    ledger.changes.push({ put: seen.version })
    ledger.now = seen
  }

  /** The server has died over this write. It must have been made wholly or not at all. */
  async #findOut(ledger: ObjectLedger, attempt: Attempt): Promise<void> {
    const { code, body } = await this.#read(ledger.name)
    const found = code === 404 ? undefined : seenIn(body)
    const isMade = attempt.serial === '' ? !found : found?.serial === attempt.serial
    if (isMade && !(attempt.serial === '' && ledger.now === undefined)) {
      this.#tally.madeUnanswered++
      this.#made(ledger, attempt, body)
      return
    }
    this.#tally.lostUnanswered++
    if (found?.version === ledger.now?.version && found?.uid === ledger.now?.uid) return
    const is = found ? `version ${found.version}` : 'nothing'
    const was = ledger.now ? `version ${ledger.now.version}` : 'nothing'
    this.#tally.problems.push(`${ledger.name}: ${was} was acknowledged, ${is} is there`)
    ledger.now = found
  }

  async #read(name: string): Promise<Answer> {
    for (;;) {
      try {
        const answer = await this.#client.ask('GET', `${collection}/${name}`)
        if (answer.code === 200 || answer.code === 404) return answer
      } catch {
        // The server is down; it will be back.
      }
      await delay(retryMs)
    }
  }
}

function attemptOn({ name, now }: ObjectLedger): Attempt {
  const serial = String(++serials)
  const data = { serial, padding: 'x'.repeat(Math.floor(Math.random() * 2_000)) }
  const object = { apiVersion: 'v1', kind: 'ConfigMap', data }
  const path = `${collection}/${name}`
  if (now === undefined) {
    return { method: 'POST', path: collection, body: { ...object, metadata: { name } }, serial }
  }
  const dice = Math.random()
  if (dice < 0.15) return { method: 'DELETE', path, serial: '' }
  if (dice < 0.5) return { method: 'PATCH', path, body: { data }, serial }
  const metadata = { name, resourceVersion: now.version }
  return { method: 'PUT', path, body: { ...object, metadata }, serial }
}
