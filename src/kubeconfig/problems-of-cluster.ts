import { problemOfLocation } from './cluster-location.ts'
import type { Cluster } from './kubeconfig.ts'

const serverSchemes = ['https:', 'http:']
const proxySchemes = ['http:', 'https:', 'socks5:', 'socks5h:']

/** What stops a cluster entry from being used, each in a sentence; kubectl's rules. */
export function problemsOfCluster(name: string, cluster: Cluster): string[] {
  const { certificateAuthority: file, certificateAuthorityData: data } = cluster
  const problems: string[] = []
  if (cluster.server === '') problems.push('it has no server')
  else if (!hasScheme(cluster.server, serverSchemes)) {
    problems.push('server must be a URL such as https://host:6443')
  }
  // Without its value: a proxy's URL may hold a password.
  if (cluster.proxyUrl !== undefined && !hasScheme(cluster.proxyUrl, proxySchemes)) {
    problems.push('proxy-url must be an http, https or socks5 URL')
  }
  if (file !== undefined && data !== undefined) {
    problems.push('certificate-authority-data and certificate-authority are both set: keep one')
  }
  if (cluster.insecureSkipTlsVerify && (file !== undefined || data !== undefined)) {
    problems.push(
      'insecure-skip-tls-verify is set together with a certificate authority: keep one of them',
    )
  }
  const location = problemOfLocation(cluster)
  if (location !== undefined) problems.push(location)
  return problems.map((problem) => `cluster ${JSON.stringify(name)}: ${problem}`)
}

function hasScheme(text: string, schemes: readonly string[]): boolean {
  return URL.canParse(text) && schemes.includes(new URL(text).protocol)
}
