import type { Controller, Watch } from '../../api/index.ts'
import { changeObject } from '../../client/index.ts'
import {
  type Clock,
  type ClusterView,
  isRecord,
  type Key,
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
  const tokens = new Map<string, StoredToken>()
  return {
    name: 'bootstrap-signer',
    watches: [tokenWatch(tokens), clusterInfoWatch()],
    firstKeys: [everything],
    reconcile: async (_key, signal) => {
      const now = clock.now()
      const signing = [...tokens.values()].filter(
        (stored) => stored.usages.has('signing') && !isExpired(stored, now),
      )
      await changeObject(
        { view, kind: wellKnownKinds.configMap, key: clusterInfoKey },
        (present) => present && signed(present, signing),
        signal,
      )
      // A token that dies takes its signature along, whether or not somebody deletes it.
      const ends = signing.flatMap(({ expiresAt }) => expiresAt ?? [])
      return ends.length > 0 ? { againAfterMs: waitUntil(Math.min(...ends), now) } : undefined
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

/** A picture of the tokens; every change of one asks for new signatures. */
function tokenWatch(tokens: Map<string, StoredToken>): Watch {
  return {
    kind: wellKnownKinds.secret,
    query: { namespace: tokenNamespace, fieldSelector: `type=${tokenSecretType}` },
    put: (object) => {
      const { stored } = readTokenSecret(object)
      if (stored && isTokenSecret(object) && object.metadata.deletionTimestamp === undefined)
        tokens.set(object.metadata.name, stored)
      else tokens.delete(object.metadata.name)
      return [everything]
    },
    remove: ({ name }) => {
      tokens.delete(name)
      return [everything]
    },
    known: () => [...tokens.keys()].map((name) => ({ namespace: tokenNamespace, name })),
  }
}

function clusterInfoWatch(): Watch {
  let isThere = false
  const seen = (is: boolean): string[] => {
    isThere = is
    return [everything]
  }
  return {
    kind: wellKnownKinds.configMap,
    query: {
      namespace: clusterInfoKey.namespace,
      fieldSelector: `metadata.name=${clusterInfoKey.name}`,
    },
    put: () => seen(true),
    remove: () => seen(false),
    known: (): Key[] => (isThere ? [clusterInfoKey] : []),
  }
}
