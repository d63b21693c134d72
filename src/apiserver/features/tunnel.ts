import { createPrivateKey, randomUUID, X509Certificate } from 'node:crypto'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { firstServiceAddress } from '../../api/index.ts'
import {
  ApiError,
  type Clock,
  type ClusterView,
  type Dialer,
  hasReason,
  type KubeObject,
  type Logger,
  readTrustedFileIfPresent,
  replaceFile,
  SallyportError,
} from '../../core/index.ts'
import { checkPeriodically, isDueForRenewal, type Pki, privateKeyPem } from '../../pki/index.ts'
import {
  createTunnelAgent,
  createTunnelServer,
  defaultRoutePermission,
  NoAgentAvailable,
  type TunnelAgent,
  type TunnelServer,
  type TunnelServerConfig,
  tunnelAgentOptionValues,
} from '../../tunnel/index.ts'
import type { Feature, Listeners, OpenContext } from '../feature.ts'
import { defaultTunnelKeepaliveMs, maxNodeConnectionShare, maxTunnelDialMs } from '../limits.ts'
import type { ServerOptions } from '../options/options.ts'
import { afterNewCa } from '../startup/admin-kubeconfig.ts'
import {
  advertiseAddress,
  hostAndPort,
  isWildcard,
  servingNames,
  tunnelAddress,
} from '../startup/serving-names.ts'

/** The organization that certificates of tunnel agents must name. */
const agentOrganization = 'system:nodes'
/** The local agent is in this group as well; only this server signs certificates for it. */
const defaultRouteGroup = 'system:sallyport:default-route-agents'
const defaultRouteRole = 'sallyport:tunnel-default-route'
const rbac = 'rbac.authorization.k8s.io'

/** Permits agents to serve destinations that belong to no node. */
const defaultRoutePolicy: readonly KubeObject[] = [
  {
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRole',
    metadata: { name: defaultRouteRole },
    rules: [
      {
        apiGroups: [defaultRoutePermission.group],
        resources: [defaultRoutePermission.resource],
        resourceNames: [defaultRoutePermission.name],
        verbs: [defaultRoutePermission.verb],
      },
    ],
  },
  {
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: defaultRouteRole },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: defaultRouteRole },
    subjects: [{ apiGroup: rbac, kind: 'Group', name: defaultRouteGroup }],
  },
]

async function ensurePolicy(view: ClusterView, signal: AbortSignal): Promise<void> {
  for (const object of defaultRoutePolicy)
    await view.write('create', object, {}, signal).catch((error: unknown) => {
      if (!hasReason(error, 'AlreadyExists')) throw error
    })
}

const agentOrganizations = [agentOrganization, defaultRouteGroup]

/** The file of the local agent's certificate, together with its key so that both change in one step. */
export const agentCertificateFile = (pki: Pki): string => join(pki.directory, 'tunnel-agent.pem')

/** Issues the local agent's certificate unless the present one is still valid; true when it did. */
export async function ensureAgentCertificate(
  pki: Pki,
  nodeName: string,
  clock: Clock,
): Promise<boolean> {
  const path = agentCertificateFile(pki)
  const commonName = `system:node:${nodeName}`
  const pem = await readTrustedFileIfPresent(path, 'private')
  if (pem !== undefined && isValid(pem, { commonName, pki, now: clock.now() })) return false
  const issued = await pki.issueClient({ commonName, organizations: agentOrganizations })
  await replaceFile(path, privateKeyPem(issued.key).reveal() + issued.certPem, 0o600)
  return true
}

function isValid(
  pem: string,
  expected: { readonly commonName: string; readonly pki: Pki; readonly now: number },
): boolean {
  try {
    const certificate = new X509Certificate(pem)
    const subject = [`CN=${expected.commonName}`, ...agentOrganizations.map((each) => `O=${each}`)]
    const names = certificate.subject.split('\n')
    return (
      subject.every((name) => names.includes(name)) &&
      certificate.checkPrivateKey(createPrivateKey(pem)) &&
      certificate.verify(expected.pki.clusterCa.certificate.publicKey) &&
      !isDueForRenewal(certificate, expected.now)
    )
  } catch {
    // An invalid file is replaced.
    return false
  }
}

/** What the local agent works with. */
interface LocalAgentDeps {
  readonly pki: Pki
  readonly server: { readonly host: string; readonly port: number }
  readonly clock: Clock
  readonly log: Logger
  /** Aborts when the server stops. */
  readonly signal: AbortSignal
}

/** Starts an agent in this process; a failure is logged, because the server works without it. */
async function startLocalAgent(deps: LocalAgentDeps): Promise<TunnelAgent | undefined> {
  const { pki, clock, signal } = deps
  const log = deps.log.child({ part: 'local agent' })
  const nodeName = hostname().toLowerCase()
  const ensure = async (): Promise<void> => {
    if (await ensureAgentCertificate(pki, nodeName, clock)) {
      log.info({ file: agentCertificateFile(pki) }, 'certificate issued')
    }
  }
  let agent: TunnelAgent | undefined
  try {
    await ensure()
    agent = createTunnelAgent({
      options: optionsOf(deps, nodeName),
      clock,
      log,
      isRoot: false,
      env: {},
    })
    await agent.start()
    checkPeriodically(ensure, { name: 'certificate of the local agent', log, signal })
    afterNewCa(pki, { name: 'certificate of the local agent', run: ensure, log })
    return agent
  } catch (err) {
    log.error({ err }, 'cannot start the local agent, continuing without it')
    await agent?.stop(AbortSignal.abort())
    return undefined
  }
}

function optionsOf({ pki, server }: LocalAgentDeps, nodeName: string) {
  const file = agentCertificateFile(pki)
  return tunnelAgentOptionValues({
    proxyServerHost: [server.host],
    proxyServerPort: server.port,
    caCert: join(pki.directory, 'ca.crt'),
    agentCert: file,
    agentKey: file,
    agentId: nodeName,
    agentIdentifiers: new URLSearchParams({ host: nodeName, 'default-route': 'true' }).toString(),
    healthServerHost: '127.0.0.1',
    healthServerPort: 0,
    adminBindAddress: '127.0.0.1',
    adminServerPort: 0,
  })
}

/** The tunnel: a port for agents, the dialer through them, and an agent in this process if requested. */
export const tunnelFeature: Feature = {
  name: 'tunnel',
  open: async (context) => {
    const { options, onClose } = context
    if (!options.tunnel) return {}
    const tunnel = new ServedTunnel(context)
    onClose('tunnel', (deadline) => tunnel.stop(deadline))
    return {
      ...(options.egress === 'tunnel' && { dialer: tunnel.dialer }),
      start: ({ location }) => tunnel.start(location.port),
    }
  },
}

/** A tunnel server, which is created once the port of the API server is known. */
class ServedTunnel {
  readonly #context: OpenContext
  #server: TunnelServer | undefined
  #agent: TunnelAgent | undefined

  constructor(context: OpenContext) {
    this.#context = context
  }

  /** Dials through agents only. */
  readonly dialer: Dialer = {
    dial: async (target, signal) => {
      try {
        if (!this.#server) throw new NoAgentAvailable()
        return await this.#server.dialer.dial(target, signal)
      } catch (error) {
        signal.throwIfAborted()
        throw error instanceof SallyportError ? unreachable(target, error) : error
      }
    },
  }

  async start(apiPort: number): Promise<Listeners> {
    const { options, pki, view, revocations, clock, log, metrics, signal } = this.#context
    if (options.tlsCertFile !== undefined) await this.#keepServingCertificate()
    const config = configOf(options, pki.directory, apiPort)
    const tunnelLog = log.child({ part: 'tunnel' })
    await ensurePolicy(view, signal)
    const server = createTunnelServer({ config, view, revocations, metrics, clock, log: tunnelLog })
    this.#server = server
    await server.start()
    if (options.tunnelLocalAgent) {
      const { agents: port } = server.ports
      const address = { host: fromHere(tunnelAddress(options)), port }
      this.#agent = await startLocalAgent({ pki, server: address, clock, log, signal })
    }
    const { agents } = server.listening
    return agents === undefined ? {} : { tunnel: agents }
  }

  async stop(deadline: AbortSignal): Promise<void> {
    await this.#agent?.stop(deadline)
    await this.#server?.stop(deadline)
  }

  /** Agents trust the cluster's CA, so their port has a certificate of it even where the API has another one. */
  async #keepServingCertificate(): Promise<void> {
    const { options, pki, log, signal } = this.#context
    const [serviceCidr = ''] = options.serviceClusterIpRange
    const names = servingNames(options, firstServiceAddress(serviceCidr))
    const ensure = async (): Promise<void> => {
      await pki.ensureServing(names)
    }
    await ensure()
    checkPeriodically(ensure, { name: 'certificate of the tunnel', log, signal })
    afterNewCa(pki, { name: 'certificate of the tunnel', run: ensure, log })
  }
}

function configOf(options: ServerOptions, pkiDirectory: string, port: number): TunnelServerConfig {
  const at = (name: string): string => join(pkiDirectory, name)
  return {
    serverId: randomUUID(),
    serverCount: 1,
    // No random agent: what belongs to no node goes to agents that are permitted to serve the default route.
    strategies: ['destHost', 'defaultRoute'],
    agentIdentityCheck: 'node',
    dialTimeoutMs: maxTunnelDialMs,
    agents: {
      host: tunnelAddress(options),
      port: options.tunnelAgentPort,
      tls: {
        certFile: at('apiserver.crt'),
        keyFile: at('apiserver.key'),
        clientCaFile: at('ca.crt'),
      },
      organization: agentOrganization,
      keepaliveMs: defaultTunnelKeepaliveMs,
    },
    nodeTraffic: {
      isOn: true,
      allowedDestinations: ownAddresses(options).map((host) => hostAndPort(host, port)),
      sniRoutes: [],
      // All of them come from one address.
      maxConnections: Math.ceil(options.maxConnectionsPerAddress * maxNodeConnectionShare),
    },
    tlsMinVersion: options.tlsMinVersion === 'VersionTLS13' ? 'TLSv1.3' : 'TLSv1.2',
    drainMs: options.shutdownGracePeriod,
  }
}

/** The address by which a process on this machine reaches a port. */
function fromHere(address: string): string {
  if (address === '::') return '::1'
  return address === '' || isWildcard(address) ? '127.0.0.1' : address
}

/** Addresses of this API server for agents; loopback only if no other process can listen on the port there. */
function ownAddresses(options: ServerOptions): string[] {
  const { bindAddress, externalHostname } = options
  const isBound = (...addresses: string[]) => addresses.some((each) => bindAddress.includes(each))
  return [
    ...(isBound('0.0.0.0', '127.0.0.1') ? ['127.0.0.1', 'localhost'] : []),
    ...(isBound('::', '::1') ? ['::1'] : []),
    ...bindAddress.filter((address) => !isWildcard(address)),
    advertiseAddress(options),
    ...(externalHostname === undefined ? [] : [externalHostname]),
  ]
}

function unreachable(
  { host, port }: { readonly host: string; readonly port: number },
  cause: SallyportError,
): ApiError {
  const message =
    cause instanceof NoAgentAvailable
      ? `cannot reach ${hostAndPort(host, port)} through the tunnel: no connected agent serves it`
      : cause.message
  return new ApiError('ServiceUnavailable', message, { cause })
}
