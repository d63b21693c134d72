import {
  liveSessions,
  type ProxyLimits,
  ServiceProxy,
  sessionEntry,
  TargetCache,
} from '../../addon/service-proxy/index.ts'
import {
  AddonTokenCache,
  addonJwksPath,
  addonKeyRotationPath,
  createAddonTokenMinter,
  DedicatedKeySigner,
  problemOfServingKey,
  ServingKeySigner,
} from '../../addon/token/index.ts'
import { liveResourceHandler } from '../../api/index.ts'
import { identityHeaderTest, impersonation } from '../../authn/index.ts'
import { denial, rbacKinds } from '../../authz/index.ts'
import { changeObject } from '../../client/index.ts'
import {
  apiVersionOf,
  type ClusterView,
  type Kind,
  type ProxiedResource,
  wellKnown,
} from '../../core/index.ts'
import { type AddressTest, isIdentityHeader, rangeTest, rememberByName } from '../../http/index.ts'
import type { Feature, FeatureContext, FeatureSubresource } from '../feature.ts'
import type { ServerOptions } from '../options/options.ts'
import { type PathRoute, sendJson } from '../routes/route.ts'

const name = 'sallyport:addon-token-keys'
const { group } = rbacKinds.clusterRole

/**
 * Lets every service account, and so every guard, read the public keys of add-on tokens at a path. What is there
 * already stays, as somebody may have changed it.
 */
async function letGuardsReadKeys(
  view: ClusterView,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  const ensure = (kind: Kind, fields: object): Promise<unknown> => {
    const made = { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { name }, ...fields }
    const asFound = (present: object | undefined) => (present ? undefined : made)
    return changeObject({ view, kind, key: { name } }, asFound, signal)
  }
  await ensure(rbacKinds.clusterRole, { rules: [{ nonResourceURLs: [path], verbs: ['get'] }] })
  await ensure(rbacKinds.clusterRoleBinding, {
    roleRef: { apiGroup: group, kind: 'ClusterRole', name },
    subjects: [{ apiGroup: group, kind: 'Group', name: wellKnown.serviceAccounts }],
  })
}

/** The way to Services, Pods and nodes, on which add-ons learn who their users are. */
export const addonFeature: Feature = async (context) => {
  const { view, dialer, authorizer, authenticate, metrics, clock, log, pki } = context
  const { options, signal, onClose } = context
  const { signer, routes } = await openSigner(context)
  const minter = createAddonTokenMinter({ signer, clock })
  const proxy = new ServiceProxy({
    view,
    targets: await TargetCache.open({ view, log, signal }),
    isAllowedTarget: targetTestOf(options),
    dialer,
    authorizer,
    authenticate,
    impersonate: impersonation({ authorizer, denial }),
    minter: new AddonTokenCache({ minter, signer, clock }),
    limits: limitsOf(options),
    recheckMs: options.addonRecheckPeriod,
    sameOriginNamespaces: new Set(options.addonSameOriginNamespace),
    isIdentityHeader: identityTestOf(options),
    clusterCaPem: () => pki.clusterCa.bundlePem,
    metrics,
    clock,
    log: log.child({ part: 'service proxy' }),
  })
  const running = proxy.run(signal)
  onClose('service proxy', () => running)
  const resources = ['services', 'pods', 'nodes'] as const
  return {
    routes,
    onListening: async () => warnOfUnbelieved(context),
    subresources: resources.map((each) => subresource(proxy, each)),
    resources: [
      { entry: sessionEntry, handle: liveResourceHandler(liveSessions(proxy.sessions), clock) },
    ],
  }
}

const optionsKinds = {
  services: 'ServiceProxyOptions',
  pods: 'PodProxyOptions',
  nodes: 'NodeProxyOptions',
} as const

function subresource(proxy: ServiceProxy, resource: ProxiedResource): FeatureSubresource {
  return {
    entry: {
      group: '',
      version: 'v1',
      resource,
      name: 'proxy',
      kind: { group: '', version: 'v1', kind: optionsKinds[resource] },
      verbs: ['create', 'delete', 'get', 'patch', 'update'],
    },
    handle: (request, response, signal) => proxy.serve(request, response, signal),
    upgrade: (request, client, signal) => proxy.upgrade(request, client, signal),
  }
}

/** The proposal's own way is the serving key; whoever wants two keys for two purposes has a published one. */
async function openSigner({ options, view, sealed, log, signal, serving }: FeatureContext) {
  const routes: PathRoute[] = []
  if (options.addonTokenKey === 'serving') {
    const current = {
      get current() {
        return serving()
      },
    }
    return { signer: new ServingKeySigner(current), routes }
  }
  const signer = await DedicatedKeySigner.open({ values: sealed, log, signal })
  await letGuardsReadKeys(view, addonJwksPath, signal)
  routes.push({
    path: addonJwksPath,
    handle: (_request, response) => {
      const { document } = signer
      response.writeHead(200, {
        'Content-Type': 'application/jwk-set+json',
        'Content-Length': document.length,
        'Cache-Control': 'public, max-age=60',
      })
      response.end(document)
    },
  })
  routes.push({
    path: addonKeyRotationPath,
    methods: ['POST'],
    handle: async (_request, response, aborted) => {
      await signer.rotate(aborted)
      sendJson(response, { keyId: signer.current.kid })
    },
  })
  return { signer, routes }
}

/** A certificate from elsewhere serves well, but says to no guard that it is the API server's. */
function warnOfUnbelieved({ options, serving, pki, clock, log }: FeatureContext): void {
  if (options.addonTokenKey !== 'serving') return
  const why = problemOfServingKey(serving(), pki.clusterCa.bundlePem, clock.now())
  if (why !== undefined)
    log.warn(
      { why },
      "guards will refuse the users of add-ons: the serving certificate is not the cluster's own; use --addon-token-key dedicated",
    )
}

const limitsOf = (options: ServerOptions): ProxyLimits => ({
  requestsPerSecond: options.addonRequestsPerSecond,
  requestBurst: options.addonRequestBurst,
  maxRequests: options.addonMaxRequests,
  maxTunnels: options.addonMaxTunnels,
  bytesPerSecond: options.addonBytesPerSecond,
  maxRequestMs: options.addonMaxRequestAge,
  maxTunnelMs: options.addonMaxTunnelAge,
  idleMs: options.addonIdleTimeout,
})

/** Every address without the option: clusters have Pods in public and private ranges alike, and we know none of them. */
const targetTestOf = ({ addonAllowedCidr }: ServerOptions): AddressTest =>
  addonAllowedCidr.length > 0 ? rangeTest(addonAllowedCidr) : () => true

function identityTestOf(options: ServerOptions) {
  const isFrontProxyHeader = identityHeaderTest({
    username: options.requestheaderUsernameHeaders,
    uid: options.requestheaderUidHeaders,
    group: options.requestheaderGroupHeaders,
    extraPrefix: options.requestheaderExtraHeadersPrefix,
  })
  const isIdentity = rememberByName((name) => isIdentityHeader(name) || isFrontProxyHeader(name))
  return (name: string, allowed?: ReadonlySet<string>): boolean => {
    if (!allowed?.has(name.toLowerCase())) return isIdentity(name)
    return isIdentityHeader(name, allowed) || isFrontProxyHeader(name)
  }
}
