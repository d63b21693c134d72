import { generateKeyPair, randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { type Clock, systemClock } from '../core/index.ts'
import { renderIssuerDocuments } from '../issuer/documents/index.ts'
import {
  type AlgorithmKey,
  type JsonObject,
  KeySet,
  type KnownAlgorithm,
  signCompactJws,
  signingKey,
  type VerificationKey,
} from '../jose/index.ts'
import { TestIssuerServer } from './fake-issuer-server.ts'

const newKeyPair = promisify(generateKeyPair)

/** What kind of issuer a test wants. */
export interface TestIssuerOptions {
  /** `https` with a CA of its own unless given. */
  readonly protocol?: 'https' | 'http'
  /** Where below the host the issuer is, for example `/clusters/a`. */
  readonly path?: string
  /** What its keys sign with; RS256 as most issuers do unless given. */
  readonly algorithm?: Exclude<KnownAlgorithm, 'HS256'>
  /** What its documents say about caching, in seconds; an hour unless given. */
  readonly maxAgeSeconds?: number
  readonly clock?: Clock
}

/** A service account, and what its token is to say. */
export interface TestAccount {
  readonly namespace?: string
  readonly name?: string
  readonly uid?: string
  readonly audience: string | readonly string[]
  readonly lifetimeSeconds?: number
  /** Name of a Pod that the token is bound to. */
  readonly pod?: string
  /** Further claims, or others in their place; undefined leaves one out. */
  readonly claims?: JsonObject
}

/** Starts an issuer on a free port of this machine: keys, both documents, tokens. */
export async function startTestIssuer(options: TestIssuerOptions = {}): Promise<TestIssuer> {
  const { protocol = 'https', path = '', maxAgeSeconds = 3_600 } = options
  const key = await newKey(options.algorithm)
  const server = await TestIssuerServer.start(protocol, path, maxAgeSeconds)
  return new TestIssuer(options, server, key)
}

/** A key of the issuer: what signs, and what is published. */
interface IssuerKey {
  readonly signer: AlgorithmKey
  readonly published: VerificationKey<KnownAlgorithm>
}

const curves: ReadonlyMap<string, string> = new Map([
  ['ES256', 'P-256'],
  ['ES384', 'P-384'],
  ['ES512', 'P-521'],
])

async function newKey(alg: TestIssuerOptions['algorithm'] = 'RS256'): Promise<IssuerKey> {
  const namedCurve = curves.get(alg)
  const made =
    namedCurve === undefined
      ? await newKeyPair('rsa', { modulusLength: 2048 })
      : await newKeyPair('ec', { namedCurve })
  const { key, publicKey } = signingKey(made.privateKey)
  return { signer: { alg, key }, published: { ...publicKey, alg } }
}

/** An issuer for the tests of relying parties: it does what a cluster does, and fails when told to. */
export class TestIssuer {
  readonly #options: TestIssuerOptions
  readonly #server: TestIssuerServer
  readonly #clock: Clock
  #key: IssuerKey
  #published: readonly IssuerKey[]

  constructor(options: TestIssuerOptions, server: TestIssuerServer, key: IssuerKey) {
    this.#options = options
    this.#server = server
    this.#clock = options.clock ?? systemClock
    this.#key = key
    this.#published = [key]
    this.#publish()
  }

  /** Its name: `iss` of its tokens. */
  get issuer(): string {
    return this.#server.issuer
  }

  /** The CA that its certificate is of; undefined with http. */
  get caPem(): string | undefined {
    return this.#server.caPem
  }

  /** What a verifier of `sallyport/relying-party` needs to reach it, all but the audience. */
  get verifierOptions(): {
    readonly issuer: string
    readonly caPem: string | undefined
    readonly allowPrivateAddresses: true
    readonly allowHttpOnLoopback: true
  } {
    const { issuer, caPem } = this
    return { issuer, caPem, allowPrivateAddresses: true, allowHttpOnLoopback: true }
  }

  /** The paths that were asked for, in order. */
  get requests(): readonly string[] {
    return this.#server.requests
  }

  /** The id of the key that signs. */
  get kid(): string {
    return this.#key.published.kid
  }

  /** A token of a service account, as Kubernetes makes them. */
  serviceAccountToken(account: TestAccount): string {
    const { namespace = 'default', name = 'default', uid = 'uid-of-the-account' } = account
    const { audience, lifetimeSeconds = 3_600, pod } = account
    const now = Math.floor(this.#clock.now() / 1000)
    return this.sign({
      aud: typeof audience === 'string' ? [audience] : audience,
      exp: now + lifetimeSeconds,
      iat: now,
      iss: this.issuer,
      jti: randomUUID(),
      'kubernetes.io': {
        namespace,
        ...(pod !== undefined && { pod: { name: pod, uid: `uid-of-${pod}` } }),
        serviceaccount: { name, uid },
      },
      nbf: now,
      sub: `system:serviceaccount:${namespace}:${name}`,
      ...account.claims,
    })
  }

  /** A token with exactly these claims. */
  sign(claims: JsonObject): string {
    return signCompactJws({ kid: this.kid }, JSON.stringify(claims), this.#key.signer)
  }

  /** A new key signs from now on and is published; the old ones stay published. Returns its id. */
  async rotate(): Promise<string> {
    this.#key = await newKey(this.#options.algorithm)
    this.#published = [...this.#published, this.#key]
    this.#publish()
    return this.#key.published.kid
  }

  /** Only the key that signs is published any longer. */
  dropOldKeys(): void {
    this.#published = [this.#key]
    this.#publish()
  }

  /** Answers with this status instead of documents, as an issuer in trouble does. */
  failWith(status: number): void {
    this.#server.failWith(status)
  }

  /** Answers with documents again. */
  recover(): void {
    this.#server.failWith(undefined)
  }

  async stop(): Promise<void> {
    await this.#server.stop()
  }

  #publish(): void {
    const keys = new KeySet(this.#published.map(({ published }) => published))
    const { issuer, jwksUri } = this.#server
    this.#server.show(renderIssuerDocuments({ issuer, jwksUri }, keys))
  }
}
