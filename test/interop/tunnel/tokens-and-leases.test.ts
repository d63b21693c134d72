import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../../bench/free-port.ts'
import { eventually } from '../../support/eventually.ts'
import { type Kubectl, kubectlAt } from '../../support/kubectl.ts'
import { findPeer, pathOrReason } from '../../support/peers.ts'
import { startSallyport } from '../../support/sallyport-process.ts'
import { TcpBalancer } from '../../support/tcp-balancer.ts'
import { echoTarget } from '../../support/tcp-target.ts'
import { exchange } from '../../support/tunnel-front.ts'
import {
  type Maker,
  type TunnelAgent,
  TunnelLab,
  type TunnelServer,
} from '../../support/tunnel-lab.ts'
import { pairs, tunnelPeersAreHere } from '../../support/tunnel-pairs.ts'

const kubectlPath = pathOrReason(findPeer('kubectl-1.36'))
const others = ['kube-apiserver-1.36', 'etcd-3.6']
const isHere =
  tunnelPeersAreHere &&
  kubectlPath !== undefined &&
  others.every((name) => pathOrReason(findPeer(name)) !== undefined)
const runner = fileURLToPath(new URL('../../../interop/peers/run-kube-apiserver', import.meta.url))
const audience = 'system:konnectivity-server'
const knownServers = 'konnectivity_network_proxy_agent_known_server_count'
const often = ['--sync-interval=200ms', '--sync-interval-cap=1s']

// Only the server decides; upstream's need not be tested.
const strictPairs = pairs.filter(({ server }) => server === 'ours')

/** An API server that can be stopped, and its administrator's kubeconfig. */
interface Api {
  readonly kubeconfig: string
  stop(): Promise<unknown>
}

async function startKubeApiserver(lab: TunnelLab): Promise<Api> {
  const port = await freePort(3) // etcd takes two
  const etcdPort = port + 1
  const place = ['--dir', join(lab.directory, 'kube'), '--port', String(port)]
  const program = lab.start(runner, [...place, '--etcd-port', String(etcdPort)])
  const kubeconfig = await program.said(/admin\.kubeconfig$/)
  return { kubeconfig, stop: () => program.stop('SIGTERM', 20_000) }
}

const apis = [
  ['kube-apiserver', startKubeApiserver],
  ['Sallyport', (): Promise<Api> => startSallyport()],
] as const

describe.skipIf(!isHere).each(apis)('%s reviews tokens and keeps leases', (_api, startApi) => {
  let lab: TunnelLab
  let kubeconfig: string
  let kubectl: Kubectl
  let stop: () => Promise<unknown> = async () => {}

  beforeAll(async () => {
    lab = await TunnelLab.open()
    const api = await startApi(lab)
    ;({ kubeconfig } = api)
    stop = () => api.stop()
    kubectl = kubectlAt(kubectlPath ?? '', kubeconfig, join(lab.directory, 'cache'))
    for (const name of ['konnectivity-agent', 'somebody-else']) {
      await kubectl(`create serviceaccount ${name} -n kube-system`)
    }
  })

  afterAll(async () => {
    await stop()
    await lab.close()
  })

  const tokenFile = async (account: string, meantFor: string): Promise<string> => {
    const path = lab.fresh('token')
    const token = await kubectl(`create token ${account} -n kube-system --audience ${meantFor}`)
    await writeFile(path, token.trim())
    return path
  }

  const startServer = (
    maker: Maker,
    account = 'konnectivity-agent',
    more: readonly string[] = [],
  ): Promise<TunnelServer> =>
    lab.server({
      maker,
      mode: 'http-connect',
      without: ['cluster-ca-cert'],
      flags: [
        '--agent-namespace=kube-system',
        `--agent-service-account=${account}`,
        `--authentication-audience=${audience}`,
        `--kubeconfig=${kubeconfig}`,
        ...more,
      ],
    })

  const startAgent = (maker: Maker, server: TunnelServer, path: string): Promise<TunnelAgent> =>
    lab.agent({
      maker,
      port: server.place.agentPort,
      without: ['agent-cert', 'agent-key'],
      flags: [`--service-account-token-path=${path}`],
    })

  test.each(pairs)('$name: the right account is let in [TUN-F12]', async (pair) => {
    const server = await startServer(pair.server)
    await startAgent(pair.agent, server, await tokenFile('konnectivity-agent', audience))
    await lab.ready(server)
    const echo = await echoTarget()
    try {
      const socket = await server.dial(echo.address)
      expect(await exchange(socket, 'by token')).toBe('by token')
      socket.destroy()
    } finally {
      await echo.close()
    }
  })

  test.each(
    strictPairs.flatMap((pair) => [
      [`${pair.name}: another account`, pair, 'somebody-else', audience] as const,
      [`${pair.name}: another audience`, pair, 'konnectivity-agent', 'somewhere-else'] as const,
    ]),
  )('%s is refused [TUN-F12]', async (_what, pair, account, meantFor) => {
    const server = await startServer(pair.server)
    const agent = await startAgent(pair.agent, server, await tokenFile(account, meantFor))
    await eventually('the agent says that it was turned away', () =>
      /cannot connect|not connected|refused|authenticat/i.test(agent.program.log),
    )
    const { healthPort } = server.place
    expect((await fetch(`http://127.0.0.1:${healthPort}/readyz`)).status).toBe(500)
  })

  test.each(strictPairs.map((pair, index) => ({ ...pair, account: `leaving-${index}` })))(
    '$name: an agent whose account is deleted is cut [TUN-F21]',
    async ({ server: serverMaker, agent: agentMaker, account }) => {
      await kubectl(`create serviceaccount ${account} -n kube-system`)
      const token = await tokenFile(account, audience)
      const server = await startServer(serverMaker, account, ['--agent-token-review-period=1s'])
      await startAgent(agentMaker, server, token)
      await lab.ready(server)
      await kubectl(`delete serviceaccount ${account} -n kube-system`)
      // kube-apiserver remembers for ten seconds that a token was good.
      await eventually(
        'the server has cut the agent',
        () => server.program.log.includes('a connection is cut'),
        60_000,
      )
      const { healthPort } = server.place
      await eventually(
        'no agent is left',
        async () => (await fetch(`http://127.0.0.1:${healthPort}/readyz`)).status === 500,
      )
      expect(server.program.log).toMatch(/the token (?:is not authentic|review failed)/)
    },
    120_000,
  )

  const leases = async (label: string): Promise<string[]> => {
    const names = await kubectl(`get leases -n kube-system -l ${label} -o name`)
    return names.split('\n').filter(Boolean)
  }

  test.each(pairs)(
    '$name: the agent counts the servers by their leases, from 2 to 4 [TUN-W16, TUN-W17, TUN-U16]',
    async (pair) => {
      const label = `k8s-app=${pair.server}-${pair.agent}`
      const flags = [`--kubeconfig=${kubeconfig}`]
      const leased = [...flags, '--enable-lease-controller', `--lease-label=${label}`]
      const counting = [...flags, '--count-server-leases', `--lease-label=${label}`, ...often]
      const startLeased = () =>
        lab.server({ maker: pair.server, mode: 'http-connect', flags: leased })
      const servers = [await startLeased()]
      const balancer = await TcpBalancer.start()
      const grow = async (count: number): Promise<void> => {
        while (servers.length < count) servers.push(await startLeased())
        for (const { place } of servers) balancer.backends.add(place.agentPort)
      }
      try {
        await grow(1)
        const { port } = balancer
        const agent = await lab.agent({ maker: pair.agent, port, flags: counting })
        for (const count of [2, 4]) {
          await grow(count)
          await lab.agentReady(agent, count)
          await eventually(`${count} servers are known`, async () => {
            return (await agent.metrics()).get(knownServers) === count
          })
          for (const server of servers) await lab.ready(server)
          expect(await leases(label)).toHaveLength(count)
        }
        servers[0]?.program.signal('SIGTERM')
        await eventually('one lease is gone', async () => (await leases(label)).length === 3)
      } finally {
        await balancer.close()
      }
    },
  )
})
