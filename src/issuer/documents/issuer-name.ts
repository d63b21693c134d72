import { changeObject } from '../../client/index.ts'
import { type ClusterView, isRecord, wellKnownKinds } from '../../core/index.ts'

const nameKey = { namespace: 'kube-system', name: 'sallyport-issuer' } as const
const dataKey = 'issuer'

/**
 * The issuer of a cluster that was given none: the one of its first start. It must not change with
 * addresses later, since every token and every relying party names it.
 */
export async function keptIssuer(
  view: ClusterView,
  atFirstStart: () => string,
  signal: AbortSignal,
): Promise<string> {
  let issuer = ''
  await changeObject(
    { view, kind: wellKnownKinds.configMap, key: nameKey },
    (present) => {
      const data = present?.['data']
      const kept = isRecord(data) ? data[dataKey] : undefined
      issuer = typeof kept === 'string' && kept !== '' ? kept : atFirstStart()
      if (issuer === kept) return undefined
      return {
        apiVersion: 'v1',
        kind: wellKnownKinds.configMap.kind,
        metadata: present?.metadata ?? { ...nameKey },
        data: { ...(isRecord(data) && data), [dataKey]: issuer },
      }
    },
    signal,
  )
  return issuer
}

/** What is wrong with an issuer for tokens at all, as in `must be ...`. */
export function problemOfIssuer(issuer: string): string | undefined {
  if (issuer === '') return 'must not be empty'
  if (issuer.includes(':') && !URL.canParse(issuer)) return 'must be a URL if it has a colon'
  return undefined
}

/** Why outsiders could not discover an issuer; tokens can be issued all the same. */
export function problemOfDiscovery(issuer: string): string | undefined {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  if (url?.protocol !== 'https:') return 'it is no https URL'
  if (issuer.includes('?') || issuer.includes('#')) return 'it has a query or a fragment'
  return undefined
}
