import { problemOfLocation } from './cluster-location.ts'
import type { Cluster, ExecConfig, Impersonation, KubeconfigUser } from './kubeconfig.ts'

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

/** What stops a user entry from being used, each in a sentence; kubectl's rules. */
export function problemsOfUser(name: string, user: KubeconfigUser): string[] {
  const problems = [
    ...problemsOfCertificate(user),
    ...problemsOfHeader(user),
    ...(user.exec && user.authProvider ? ['exec and auth-provider are both set: keep one'] : []),
    ...(user.exec ? problemsOfExec(user.exec) : []),
    ...(user.impersonate ? problemsOfImpersonation(user.impersonate) : []),
  ]
  return problems.map((problem) => `user ${JSON.stringify(name)}: ${problem}`)
}

/** One request has room for one `Authorization`. */
function problemsOfHeader({ token, tokenFile, username, password }: KubeconfigUser): string[] {
  const both = (one: string, other: string): string[] => [
    `${one} and ${other} are both set: only one way to authenticate is allowed`,
  ]
  if (token && username !== undefined) return both('token', 'username')
  if (token && password) return both('token', 'password')
  return tokenFile !== undefined && username !== undefined ? both('tokenFile', 'username') : []
}

function problemsOfCertificate(user: KubeconfigUser): string[] {
  const certificates = [user.clientCertificateData, user.clientCertificate]
  const keys = [user.clientKeyData, user.clientKey]
  const count = (items: readonly unknown[]): number =>
    items.filter((item) => item !== undefined).length
  const problems: string[] = []
  if (count(certificates) === 2) {
    problems.push('client-certificate-data and client-certificate are both set: keep one')
  }
  if (count(keys) === 2) problems.push('client-key-data and client-key are both set: keep one')
  if (count(certificates) > 0 && count(keys) === 0) {
    problems.push('a client certificate needs client-key-data or client-key')
  }
  if (count(keys) > 0 && count(certificates) === 0) {
    problems.push('a client key needs client-certificate-data or client-certificate')
  }
  return problems
}

const modes = ['Never', 'IfAvailable', 'Always']

function problemsOfExec(exec: ExecConfig): string[] {
  const problems: string[] = []
  if (exec.command === '') problems.push('exec has no command')
  if (exec.apiVersion === '') problems.push('exec has no apiVersion')
  if (exec.env?.some(({ name }) => name === '')) problems.push('exec has an env without a name')
  if (exec.interactiveMode !== undefined) {
    if (!modes.includes(exec.interactiveMode)) {
      problems.push(`exec.interactiveMode must be one of ${modes.join(', ')}`)
    }
  } else if (exec.apiVersion === 'client.authentication.k8s.io/v1') {
    problems.push(`exec.interactiveMode is needed: one of ${modes.join(', ')}`)
  }
  return problems
}

function problemsOfImpersonation({ username, uid, groups, extra }: Impersonation): string[] {
  if (username !== undefined || (uid === undefined && !groups?.length && !extra)) return []
  return ['as-uid, as-groups and as-user-extra need as']
}
