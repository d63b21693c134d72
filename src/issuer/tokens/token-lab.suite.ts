import { sign as cryptoSign, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { type KubeObject, kubeTime } from '../../core/index.ts'
import { KeySet, type SigningKey, signCompactJws, signingKey } from '../../jose/index.ts'
import { privateKeyFor, segment } from '../../jose/jose.suite.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import type { IssuerNames } from '../documents/issuer-name.ts'
import type { IssuerKeys, KeyState } from '../keys/key-ring.ts'

const key = (made: KeyObject): SigningKey => signingKey(made)
const rsaWith = (publicExponent: number): KeyObject =>
  generateKeyPairSync('rsa', { modulusLength: 2048, publicExponent }).privateKey

/** The keys of the lab: those the issuer has, those it had, and those of others. */
export const labKeys = {
  rsa: key(privateKeyFor('RS256')),
  p256: key(privateKeyFor('ES256')),
  p384: key(privateKeyFor('ES384')),
  p521: key(privateKeyFor('ES512')),
  /** A small exponent makes careless checks of padding forgeable. */
  cubic: key(rsaWith(3)),
  /** Believed here, and not shown outside. */
  hidden: key(privateKeyFor('ES256')),
  dropped: key(privateKeyFor('ES256')),
  attacker: key(privateKeyFor('ES256')),
  attackerRsa: key(privateKeyFor('RS256')),
} as const

const { rsa, p256, p384, p521, cubic, hidden } = labKeys
const publicOf = (keys: readonly SigningKey[]) => keys.map(({ publicKey }) => publicKey)
const shown = [rsa, p256, p384, p521, cubic]

/** Keys that do not change. */
export const labKeyState: KeyState = {
  signer: rsa,
  published: new KeySet(publicOf(shown)),
  accepted: new KeySet(publicOf([...shown, hidden])),
  maxAgeSeconds: 3_600,
}

export type Claims = Readonly<Record<string, unknown>>

/** How a token departs from the plain good one. A claim that is undefined is left out. */
export interface TokenChange {
  readonly claims?: Claims
  /** Members of `kubernetes.io`. */
  readonly own?: Claims
  readonly header?: Claims
  readonly key?: SigningKey
}

const object = (kind: string, name: string, uid: string, rest: Claims = {}): KubeObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { name, uid, ...(kind !== 'Node' && { namespace: 'shop' }) },
  ...rest,
})

/** The objects that tokens of the lab speak of. */
export const labObjects = {
  account: object('ServiceAccount', 'bot', 'sa-1'),
  pod: object('Pod', 'web', 'pod-1', {
    spec: {
      serviceAccountName: 'bot',
      nodeName: 'worker',
      volumes: [
        { name: 'data', emptyDir: {} },
        {
          name: 'tokens',
          projected: {
            sources: [
              { configMap: { name: 'ca' } },
              { serviceAccountToken: { path: 'token' } },
              { serviceAccountToken: { path: 'vault', audience: 'vault' } },
            ],
          },
        },
      ],
    },
  }),
  secret: object('Secret', 'held', 'secret-1'),
  node: object('Node', 'worker', 'node-1'),
} as const

/** The private claims of tokens that are bound to an object. */
export const boundTo = {
  pod: { pod: { name: 'web', uid: 'pod-1' }, node: { name: 'worker', uid: 'node-1' } },
  secret: { secret: { name: 'held', uid: 'secret-1' } },
  node: { node: { name: 'worker', uid: 'node-1' } },
} as const

/** A cluster, a clock and keys in which tokens can be made and judged. */
export class TokenLab {
  readonly view = new FakeClusterView({ objects: Object.values(labObjects) })
  readonly names: IssuerNames = {
    issuers: ['https://issuer.example', 'https://old.example'],
    apiAudiences: ['https://issuer.example'],
  }
  readonly keys: IssuerKeys = {
    current: labKeyState,
    requireFresh: () => {},
    onChange: () => () => {},
  }
  /** Seconds since 1970. */
  now = 1_800_000_000
  readonly clock = { now: () => this.now * 1000, monotonic: () => this.now * 1000 }
  /** Where a header may try to lead us. */
  readonly attackerUrl: string

  constructor(attackerUrl = 'https://attacker.example') {
    this.attackerUrl = attackerUrl
  }

  /** The claims of a good token. */
  claims({ claims, own }: TokenChange = {}): Claims {
    return {
      aud: ['https://issuer.example'],
      exp: this.now + 3_600,
      iat: this.now,
      iss: 'https://issuer.example',
      jti: '7f1b0a2e-0000-4000-8000-000000000001',
      'kubernetes.io': {
        namespace: 'shop',
        serviceaccount: { name: 'bot', uid: 'sa-1' },
        ...own,
      },
      nbf: this.now,
      sub: 'system:serviceaccount:shop:bot',
      ...claims,
    }
  }

  /** A token of the issuer, good unless changed. */
  token(change: TokenChange = {}): string {
    const { key: signer = rsa, header } = change
    const text = JSON.stringify(this.claims(change))
    return signCompactJws({ kid: signer.kid, ...header }, text, signer)
  }

  /** A token with a payload that no issuer would write. */
  tokenOf(payload: string | Uint8Array, header: Claims = { kid: rsa.kid }): string {
    return signCompactJws(header, payload, rsa)
  }

  /** A token whose signature is whatever `sign` makes of the signed bytes. */
  signed(header: Claims, sign: (input: Buffer) => Buffer, change: TokenChange = {}): string {
    const input = `${segment(header)}.${segment(this.claims(change))}`
    return `${input}.${sign(Buffer.from(input)).toString('base64url')}`
  }

  /** Marks an object as being deleted for so many seconds. */
  endingSince(ending: KubeObject, seconds: number): void {
    const deletionTimestamp = kubeTime((this.now - seconds) * 1000)
    this.view.put({ ...ending, metadata: { ...ending.metadata, deletionTimestamp } })
  }

  async remove(gone: KubeObject): Promise<void> {
    await this.view.write('delete', gone, {}, new AbortController().signal)
  }

  /** Deletes an object and makes another one under its name. */
  async makeAgain(gone: KubeObject): Promise<void> {
    await this.remove(gone)
    this.view.put({ ...gone, metadata: { ...gone.metadata, uid: 'another' } })
  }
}

/** Signs with a digest of one's own choice. */
export const signWith =
  (digest: string, options: Parameters<typeof cryptoSign>[2]) =>
  (input: Buffer): Buffer =>
    cryptoSign(digest, input, options as never)
