import { type Clock, Secret } from '../../core/index.ts'
import type { Credential, Refusal } from '../credential.ts'
import { CredentialError } from '../errors.ts'
import type { CredentialEvent, CredentialObserver } from './source.ts'

/** A clock that stands still until it is moved. */
export class FakeClock implements Clock {
  #now = Date.parse('2026-03-01T12:00:00Z')

  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#now
  }

  advance(ms: number): void {
    this.#now += ms
  }
}

/** What a fake plugin does when it is run. */
export type Answer = (run: number) => Credential | Error | Promise<Credential>

/** A plugin that counts its runs and answers as it is told. */
export class FakePlugin {
  readonly refusals: (Refusal | undefined)[] = []
  readonly signals: AbortSignal[] = []
  answer: Answer

  constructor(answer: Answer) {
    this.answer = answer
  }

  get runs(): number {
    return this.refusals.length
  }

  readonly fetch = async (
    refusal: Refusal | undefined,
    signal: AbortSignal,
  ): Promise<Credential> => {
    this.refusals.push(refusal)
    this.signals.push(signal)
    const answer = await this.answer(this.runs)
    if (answer instanceof Error) throw answer
    return answer
  }
}

/** A credential with a token that tells which run it came from. */
export const tokenOfRun = (run: number, expiresAt?: number): Credential => ({
  token: new Secret(`token-${run}`),
  ...(expiresAt !== undefined && { expiresAt }),
})

/** Something that is settled by hand. */
export interface Deferred<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (error: unknown) => void
}

/** A promise that is settled by hand. */
export function deferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => {}
  let reject: (error: unknown) => void = () => {}
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}

/** The failure of a plugin that ends badly. */
export const pluginFailure = (): CredentialError =>
  new CredentialError('EXIT', 'the plugin login ended with exit code 3', {
    command: 'login',
    exitCode: 3,
  })

/** The answer of a server that does not accept a credential. */
export const refusal401: Refusal = {
  status: 401,
  headers: { 'www-authenticate': ['Bearer', 'Basic'] },
}

/** An observer that keeps what it is told. */
export class EventLog implements CredentialObserver {
  readonly events: CredentialEvent[] = []

  notify(event: CredentialEvent): void {
    this.events.push(event)
  }

  types(): string[] {
    return this.events.map(({ type }) => type)
  }
}
