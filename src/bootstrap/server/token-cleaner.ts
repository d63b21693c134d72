import type { Controller } from '../../api/index.ts'
import {
  type Clock,
  type ClusterView,
  hasReason,
  isRecord,
  type KubeObject,
  longestTimerMs,
  wellKnownKinds,
} from '../../core/index.ts'
import { isTokenSecret, tokenNamespace, tokenSecretType } from '../tokens/stored-token.ts'

/** How long to wait for a moment; for one that no timer reaches, as long as one can. */
export const waitUntil = (momentMs: number, nowMs: number): number =>
  Math.min(momentMs - nowMs, longestTimerMs)

interface ExpiringToken {
  readonly uid: string | undefined
  /** Undefined if it never expires. */
  readonly expiresAt: number | undefined
}

const expiringToken = (object: KubeObject): ExpiringToken | undefined =>
  isTokenSecret(object) ? { uid: object.metadata.uid, expiresAt: endOf(object) } : undefined

/** Deletes tokens when they have expired, and those whose end cannot be read. */
export function createTokenCleaner(view: ClusterView, clock: Clock): Controller {
  return {
    name: 'token-cleaner',
    start({ watch }) {
      const tokens = watch<ExpiringToken>({
        kind: wellKnownKinds.secret,
        query: { namespace: tokenNamespace, fieldSelector: `type=${tokenSecretType}` },
        project: expiringToken,
        keysOf: ({ name, after }) => (after ? [name] : []),
      })
      return async (name, signal) => {
        const { expiresAt, uid } = tokens.get({ namespace: tokenNamespace, name }) ?? {}
        if (expiresAt === undefined) return undefined
        const now = clock.now()
        if (expiresAt > now) return { againAfterMs: waitUntil(expiresAt, now) }
        await remove(view, { name, uid }, signal)
        return undefined
      }
    },
  }
}

/** Anything that is written there and is no time counts as past, as in Kubernetes. */
function endOf({ data }: KubeObject): number | undefined {
  const encoded = isRecord(data) ? data['expiration'] : undefined
  if (typeof encoded !== 'string' || encoded === '') return undefined
  const end = Date.parse(Buffer.from(encoded, 'base64').toString())
  return Number.isNaN(end) ? 0 : end
}

async function remove(
  view: ClusterView,
  { name, uid }: { readonly name: string; readonly uid: string | undefined },
  signal: AbortSignal,
): Promise<void> {
  const object = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: tokenNamespace },
  }
  try {
    await view.write('delete', object, uid === undefined ? {} : { uid }, signal)
  } catch (error) {
    // Another server was faster, or somebody has made a new token of that name.
    if (!hasReason(error, 'NotFound', 'Conflict')) throw error
  }
}
