import { createPrivateKey } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClusterView } from '../../../src/core/index.ts'
import { type SigningKey, signingKey } from '../../../src/jose/index.ts'
import { HttpsCaller } from '../../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../../support/in-process-server.ts'
import { runSallyport } from '../../support/sallyport-process.ts'

const keysName = 'signing-keys'
const marginMs = 10 * 60_000

interface StoredKey {
  kid: string
  signsFrom: number
  retiredAt?: number
  tokensUntil: number
  readonly pem: string
}

/** A server, its tokens, and a rotation that does not take 90 minutes. */
export class RotatingIssuer {
  readonly issuer: string
  readonly caFile: string
  readonly #server: InProcessServer
  readonly #view: ClusterView
  readonly #stranger: HttpsCaller
  readonly #signal = new AbortController().signal

  private constructor(server: InProcessServer, ca: string) {
    this.#server = server
    this.#view = server.serving.view
    this.#stranger = new HttpsCaller({ port: server.port, ca })
    this.issuer = server.serving.url
    this.caFile = join(server.dataDirectory, 'pki', 'ca.crt')
  }

  static async start(...flags: string[]): Promise<RotatingIssuer> {
    const server = await startInProcess({ flags: ['--service-account-issuer-public', ...flags] })
    const ca = await readFile(join(server.dataDirectory, 'pki', 'ca.crt'), 'utf8')
    const issuer = new RotatingIssuer(server, ca)
    const bot = {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'bot', namespace: 'default' },
    }
    await issuer.#view.write('create', bot, {}, issuer.#signal)
    return issuer
  }

  async newToken(audience: string): Promise<string> {
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: { name: 'bot', namespace: 'default' },
      spec: { audiences: [audience], expirationSeconds: 3_600 },
    }
    const { status } = await this.#view.review('TokenRequest', request, this.#signal)
    return (status as { token: string }).token
  }

  /** The key that signs, with which a test makes tokens that the server would not make. */
  async signingKey(): Promise<SigningKey> {
    const now = Date.now()
    const found = await this.#server.sealed.get(keysName, this.#signal)
    const { pem } = keysIn(found?.value).findLast(({ signsFrom }) => signsFrom <= now)!
    return signingKey(createPrivateKey(pem))
  }

  /** The ids of the keys that outsiders see now. */
  async publishedKids(): Promise<string[]> {
    const { text } = await this.#stranger.get('/openid/v1/jwks')
    return (JSON.parse(text) as { keys: { kid: string }[] }).keys.map(({ kid }) => kid)
  }

  /** As an operator does it: the next key is published from then on. */
  async rotate(): Promise<void> {
    const { code, stderr } = await runSallyport([
      'issuer',
      'rotate',
      '--data-dir',
      this.#server.dataDirectory,
    ])
    if (code !== 0) throw new Error(stderr)
  }

  /** Ends the wait for caches now: the next key signs. */
  endPublication(): Promise<void> {
    return this.#change((keys) => {
      const next = keys.at(-1)
      if (next) next.signsFrom = Date.now()
    })
  }

  /** Lets the first key's last token be dead, and so the key dropped, in a moment. */
  endRetirement(): Promise<void> {
    return this.#change(([first]) => {
      const dead = Date.now() - marginMs + 500
      if (first) Object.assign(first, { retiredAt: dead, tokensUntil: dead })
    })
  }

  async stop(): Promise<void> {
    this.#stranger.close()
    await this.#server.close()
  }

  async #change(change: (keys: StoredKey[]) => void): Promise<void> {
    await this.#server.sealed.change(
      keysName,
      (present) => {
        const keys = keysIn(present)
        change(keys)
        return Buffer.from(JSON.stringify({ version: 1, keys }))
      },
      this.#signal,
    )
  }
}

const keysIn = (value: Buffer | undefined): StoredKey[] =>
  (JSON.parse(String(value)) as { keys: StoredKey[] }).keys
