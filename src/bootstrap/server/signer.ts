import type { Controller } from '../../api/index.ts'
import { changeObject } from '../../client/index.ts'
import {
  type Clock,
  type ClusterView,
  isRecord,
  type KubeObject,
  wellKnownKinds,
} from '../../core/index.ts'
import { signWithToken } from '../tokens/signature.ts'
import {
  isExpired,
  isTokenSecret,
  readTokenSecret,
  type StoredToken,
  tokenNamespace,
  tokenSecretType,
} from '../tokens/stored-token.ts'
import { clusterInfoKey } from './discovery-authenticator.ts'
import { waitUntil } from './token-cleaner.ts'

const signaturePrefix = 'jws-kubeconfig-'
const everything = 'cluster-info'

/** Keeps the signatures in cluster-info right: one of every token that may sign, none of any other. */
export function createSigner(view: ClusterView, clock: Clock): Controller {
  return {
    name: 'bootstrap-signer',
    start({ watch, enqueue }) {
      const tokens = watch<StoredToken>({
        kind: wellKnownKinds.secret,
        query: { namespace: tokenNamespace, fieldSelector: `type=${tokenSecretType}` },
        project: validToken,
        keysOf: () => [everything],
      })
      watch({
        kind: wellKnownKinds.configMap,
        query: {
          namespace: clusterInfoKey.namespace,
          fieldSelector: `metadata.name=${clusterInfoKey.name}`,
        },
        project: ({ metadata }) => metadata.resourceVersion,
        keysOf: () => [everything],
      })
      enqueue(everything)
      return async (_key, signal) => {
        const now = clock.now()
        const signing = [...tokens.list()].filter(
          (stored) => stored.usages.has('signing') && !isExpired(stored, now),
        )
        await changeObject(
          { view, kind: wellKnownKinds.configMap, key: clusterInfoKey },
          (present) => present && signed(present, signing),
          signal,
        )
        // The signature of an expired token is removed, whether or not the token is deleted.
        const ends = signing.flatMap(({ expiresAt }) => expiresAt ?? [])
        return ends.length > 0 ? { againAfterMs: waitUntil(Math.min(...ends), now) } : undefined
      }
    },
  }
}

/** The object with the right signatures; undefined if it has them already. */
function signed(present: KubeObject, tokens: readonly StoredToken[]): KubeObject | undefined {
  const data = isRecord(present['data']) ? present['data'] : {}
  const { kubeconfig } = data
  if (typeof kubeconfig !== 'string' || kubeconfig === '') return undefined
  const others = Object.entries(data).filter(([name]) => !name.startsWith(signaturePrefix))
  const signatures = tokens
    .map(
      ({ token }) => [`${signaturePrefix}${token.id}`, signWithToken(kubeconfig, token)] as const,
    )
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  const next = Object.fromEntries([...others, ...signatures])
  const isRight =
    Object.keys(next).length === Object.keys(data).length &&
    Object.entries(next).every(([name, value]) => data[name] === value)
  return isRight ? undefined : { ...present, data: next }
}

function validToken(object: KubeObject): StoredToken | undefined {
  if (!isTokenSecret(object) || object.metadata.deletionTimestamp !== undefined) return undefined
  return readTokenSecret(object).stored
}
