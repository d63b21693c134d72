import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Peer, pathOrReason } from '../../support/peers.ts'

const program = fileURLToPath(new URL('../../../interop/verifiers/path', import.meta.url))

/** The verifiers of interop/verifiers. */
export const verifierNames = [
  'go-oidc',
  'pyjwt',
  'nimbus',
  'jose',
  'openid-client',
  'openidconnect',
] as const

/** One of the verifiers. */
export type VerifierName = (typeof verifierNames)[number]

/** Whose tokens are believed, by whom, and by which root its certificate is checked. */
export interface Trust {
  readonly issuer: string
  readonly audience: string
  readonly caFile: string
}

/** What a verifier said of a token: its subject, or why it was refused. */
export type Verdict =
  | { readonly ok: true; readonly sub: string }
  | { readonly ok: false; readonly why: string }

function find(name: string): Peer {
  try {
    const stdio = ['ignore', 'pipe', 'pipe'] as const
    return { path: execFileSync(program, [name], { encoding: 'utf8', stdio: [...stdio] }).trim() }
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : ''
    return { missing: stderr || `${name} is not built: run interop/verifiers/build ${name}` }
  }
}

/** Whether all verifiers are built; says which are not. */
export const verifiersAreHere = verifierNames.every(
  (name) => pathOrReason(find(name)) !== undefined,
)

/** A library of others in a process of its own, which judges one token after the other. */
export class OutsideVerifier {
  readonly name: VerifierName
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>

  private constructor(name: VerifierName, child: ChildProcess, lines: AsyncIterator<string>) {
    this.name = name
    this.#child = child
    this.#lines = lines
  }

  /** Resolves once it has read the issuer's document; rejects with what it said if it could not. */
  static async start(
    name: VerifierName,
    { issuer, audience, caFile }: Trust,
  ): Promise<OutsideVerifier> {
    const found = find(name)
    if ('missing' in found) throw new Error(found.missing)
    const child = spawn(found.path, [issuer, audience, caFile], { stdio: 'pipe' })
    let stderr = ''
    child.stderr.on('data', (chunk: unknown) => {
      stderr += String(chunk)
    })
    const closed = once(child, 'close')
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const first = await lines.next()
    if (first.value === 'ready') return new OutsideVerifier(name, child, lines)
    await closed
    throw new Error(`${name} did not begin:\n${stderr}`)
  }

  /** Asks for a verdict; one token at a time. */
  async judge(token: string): Promise<Verdict> {
    this.#child.stdin?.write(`${token}\n`)
    const { value, done } = await this.#lines.next()
    if (done) throw new Error(`${this.name} is gone`)
    return JSON.parse(value) as Verdict
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const closed = once(this.#child, 'close')
    this.#child.stdin?.end()
    await closed
  }
}
