import { type Logger, readGivenFile, SallyportError, Secret } from '../../../core/index.ts'
import { tunnelThrough } from '../../../credentials/proxy/index.ts'
import { showHostPort } from '../../addresses.ts'
import type { ConnectLinkOptions } from '../../link/index.ts'
import { allCapabilities, type Link, type PacketTally } from '../../link/index.ts'
import type { ServerAddress } from './server-addresses.ts'

/** Ends a link that nobody is going to use. */
export function dismissLink(link: Link): void {
  link.start({ dial: (dial) => dial.refuse('this link is about to end'), drain: () => {} })
  link.close()
}

/** A file that proves who the agent or the server is cannot be used. */
class AgentCredentialUnusable extends SallyportError {
  readonly code = 'TUNNEL_CREDENTIAL_UNUSABLE'
}

/** Where the proofs of identity are. */
interface CredentialFiles {
  readonly caCert: string
  readonly agentCert: string
  readonly agentKey: string
  readonly serviceAccountTokenPath: string
}

/** The proofs of identity as the files have them now. */
interface ServerCredentials {
  readonly ca: string
  readonly cert?: string
  readonly key?: Secret
  readonly token?: Secret
}

const pemCertificate = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/

/** Reads all files anew, so that whatever rotates them needs to tell nobody. */
async function readCredentials(files: CredentialFiles): Promise<ServerCredentials> {
  const [ca, cert, key, token] = await Promise.all([
    read(files.caCert, '--ca-cert'),
    readIfNamed(files.agentCert, '--agent-cert'),
    readIfNamed(files.agentKey, '--agent-key'),
    readIfNamed(files.serviceAccountTokenPath, '--service-account-token-path'),
  ])
  // TLS passes over what it cannot read, and would then blame the server.
  if (!pemCertificate.test(ca)) {
    throw new AgentCredentialUnusable(
      `${files.caCert}, named by --ca-cert, holds no certificate in PEM form`,
    )
  }
  const trimmed = token?.trim()
  if (trimmed !== undefined && !/^[\x21-\x7e]+$/.test(trimmed)) {
    throw new AgentCredentialUnusable(
      `${files.serviceAccountTokenPath}, named by --service-account-token-path, holds no token`,
    )
  }
  return {
    ca,
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key: new Secret(key) }),
    ...(trimmed !== undefined && { token: new Secret(trimmed) }),
  }
}

/** Throws `FILE_UNTRUSTED` if another user could change one of the files; other faults may pass until the connect. */
export async function requireTrustedCredentials(files: CredentialFiles): Promise<void> {
  const { caCert, agentCert, agentKey, serviceAccountTokenPath } = files
  for (const path of [caCert, agentCert, agentKey, serviceAccountTokenPath])
    await readIfNamed(path, '')?.catch((error: unknown) => {
      if (!(error instanceof AgentCredentialUnusable)) throw error
    })
}

const readIfNamed = (path: string, flag: string): Promise<string> | undefined =>
  path === '' ? undefined : read(path, flag)

async function read(path: string, flag: string): Promise<string> {
  return readGivenFile(
    path,
    (code, cause) =>
      new AgentCredentialUnusable(`cannot read ${path}, named by ${flag}: ${code}`, { cause }),
  )
}

/** Opens a link as `connectLink` does. */
export type Connect = (options: ConnectLinkOptions) => Promise<Link>

/** How the agent presents itself, and to whom. */
export interface ServerConnectorParts {
  readonly connect: Connect
  readonly files: CredentialFiles
  readonly agentId: string
  readonly agentIdentifiers: string
  readonly alpn: readonly string[]
  readonly keepaliveMs: number
  readonly packets: PacketTally
  readonly log: Logger
}

/** A link to a server that has said who it is. */
export interface ConnectedServer {
  readonly serverId: string
  /** How many servers it says there are; absent when it does not say. */
  readonly serverCount?: number
  readonly link: Link
}

/** A server answered, but not as one must. */
class ServerUnusable extends SallyportError {
  readonly code = 'TUNNEL_SERVER_UNUSABLE'
}

/** Servers in Go hang up on those who ask more often than every 30 s. */
const latestAskMs = 35_000
const answerMs = 20_000

/** Connects to the server at an address, with the proofs of identity that the files hold now. */
export async function connectServer(
  parts: ServerConnectorParts,
  address: ServerAddress,
  signal: AbortSignal,
): Promise<ConnectedServer> {
  const { ca, cert, key, token } = await readCredentials(parts.files)
  const { proxy } = address
  const link = await parts.connect({
    host: address.host,
    port: address.port,
    ...(proxy && { open: (given) => tunnelThrough(proxy, address, { caPem: ca, signal: given }) }),
    tls: {
      ca,
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key: key.reveal() }),
      ...(address.name !== undefined && { servername: address.name }),
      ...(parts.alpn.length > 0 && { alpn: parts.alpn }),
    },
    metadata: {
      agentid: parts.agentId,
      ...(parts.agentIdentifiers !== '' && { agentidentifiers: parts.agentIdentifiers }),
      ...(token !== undefined && { authorization: `Bearer ${token.reveal()}` }),
    },
    capabilities: allCapabilities,
    keepalive: {
      timeMs: Math.min(parts.keepaliveMs || latestAskMs, latestAskMs),
      timeoutMs: answerMs,
    },
    packets: parts.packets,
    log: parts.log,
    signal,
  })
  return introduced(link, showHostPort(address))
}

/** Checks the headers of a server; a link to one that does not say who it is, is closed. */
function introduced(link: Link, where: string): ConnectedServer {
  const ids = link.metadata['serverid'] ?? []
  const counts = link.metadata['servercount'] ?? []
  const [serverId] = ids
  if (serverId === undefined || serverId === '' || ids.length > 1) {
    dismissLink(link)
    throw new ServerUnusable(`${where} sent ${ids.length} server ids in its header, not one`)
  }
  // It is repeated in every log line about the server.
  if (!/^[\x21-\x7e]{1,256}$/.test(serverId)) {
    dismissLink(link)
    throw new ServerUnusable(`${where} sent a server id that is not 1 to 256 printable characters`)
  }
  const [count = ''] = counts
  const isCount = counts.length === 1 && /^\d{1,9}$/.test(count)
  return { serverId, link, ...(isCount && { serverCount: Number(count) }) }
}
