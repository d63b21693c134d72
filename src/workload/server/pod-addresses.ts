import { endpointIpProblems } from '../../api/index.ts'
import { isRecord, type KubeObject } from '../../core/index.ts'

/** The addresses in a Pod's status, each once. */
export function podAddresses(pod: KubeObject | undefined): string[] {
  const status = pod?.['status']
  if (!isRecord(status)) return []
  const listed = Array.isArray(status['podIPs']) ? status['podIPs'].filter(isRecord) : []
  const all = [status['podIP'], ...listed.map(({ ip }) => ip)]
  return [...new Set(all.filter((ip) => typeof ip === 'string' && ip !== ''))].map(String)
}

/**
 * Why these cannot be the addresses of a Pod. Loopback is refused to all but those whose loopback is the
 * server's; the strict rule also refuses what no process can be reached at, such as link-local addresses.
 */
export function problemOfAddresses(
  addresses: readonly string[],
  rule: { readonly mayLoopback: boolean; readonly isStrict: boolean },
): string | undefined {
  for (const ip of addresses) {
    const anyway = endpointIpProblems(ip, true)
    const isLoopback = endpointIpProblems(ip, false).length > anyway.length
    if (isLoopback && !rule.mayLoopback)
      return `pod IP ${ip} is on loopback, which is for \`workload run\` on the server's own machine only`
    if (rule.isStrict && anyway.length > 0) return `pod IP ${ip} ${anyway[0]}`
  }
  return undefined
}
