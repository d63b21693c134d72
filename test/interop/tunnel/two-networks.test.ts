import { X509Certificate } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { type Network, whyNoNetworks } from '../../support/network-namespace.ts'
import { findPeer, findProgram, pathOrReason } from '../../support/peers.ts'
import { addresses, ports, SplitCluster } from '../../support/split-cluster.ts'
import { allowBootstrap, bootstrapNode } from '../../support/tls-bootstrap.ts'

const needed = ['kube-apiserver-1.36', 'kubectl-1.36', 'etcd-3.6', 'tunnel-load'].map(findPeer)
const reason = whyNoNetworks()
if (reason !== undefined) console.warn(`skipped: ${reason}`)
const isHere =
  reason === undefined &&
  [...needed, findProgram('openssl')].every((peer) => pathOrReason(peer) !== undefined)

const pathOf = (name: string): string => {
  const peer = findPeer(name)
  return 'path' in peer ? peer.path : ''
}

const gate = '--feature-gates=NodeToMasterTraffic=true'
const refusedPort = 16_444
const bulkPort = 16_445
const bulkTarget = `127.0.0.1:${bulkPort}`

/** Connects and says how the connection ended, and after how long. */
const probe = `
const [host, port, then] = process.argv.slice(1)
const began = performance.now()
let outcome = 'closed'
let bytes = 0
require('node:net').connect(Number(port), host)
  .on('data', (part) => { bytes += part.length })
  .on('connect', function () { if (then === 'leave') this.destroy(), outcome = 'open' })
  .on('error', (error) => { outcome = error.code })
  .on('close', () => console.log(JSON.stringify({ outcome, bytes, ms: performance.now() - began })))`

/** What kube-proxy does with the Service `default/kubernetes`: its address leads to the endpoint. */
const serviceForwarder = `
const [from, to] = process.argv.slice(1).map((text) => text.split(':'))
const net = require('node:net')
net.createServer((near) => {
  const far = net.connect(Number(to[1]), to[0])
  near.pipe(far).pipe(near)
  for (const each of [near, far]) each.on('error', () => {})
}).listen(Number(from[1]), from[0], () => console.log('listening'))`

describe.skipIf(!isHere)(
  'two networks with the same addresses, joined by the agent port only',
  () => {
    let cluster: SplitCluster
    let nodeKubeconfig: string

    const openProbe = async (network: Network, host: string, port: number, then = 'stay') => {
      const command = [process.execPath, '-e', probe, '--', host, String(port), then]
      const { stdout } = await cluster.run(network, command)
      return JSON.parse(stdout) as { outcome: string; bytes: number; ms: number }
    }

    const onNode = (...args: readonly string[]): Promise<string> =>
      cluster.kubectlIn(cluster.node, nodeKubeconfig, ...args)

    beforeAll(async () => {
      cluster = await SplitCluster.open(
        { mode: 'http-connect', transport: 'uds' },
        { server: 'ours', agent: 'ours' },
      )
      await cluster.startAgent(
        gate,
        `--bind-address=${addresses.bind}`,
        `--target=${ports.api}:127.0.0.1:${ports.api}`,
        `--target=127.0.0.1:${ports.etcd}:${refusedPort}`,
        `--target=${bulkPort}:${bulkTarget}`,
      )
      const allowed = [`127.0.0.1:${ports.api}`, bulkTarget]
      await cluster.startServer(gate, ...allowed.map((each) => `--allowed-destination=${each}`))
    })

    afterAll(() => cluster.close())

    test('the agent serves while no Kubernetes API is reachable [TUN-R15, TUN-R22]', async () => {
      const { outcome, bytes, ms } = await eventually('the listener', async () => {
        const probed = await openProbe(cluster.node, addresses.bind, ports.api)
        return probed.outcome === 'ECONNREFUSED' ? undefined : probed
      })
      expect({ outcome: outcome.replace('ECONNRESET', 'closed'), bytes }).toEqual({
        outcome: 'closed',
        bytes: 0,
      })
      expect(ms).toBeLessThan(5_000)
      expect(cluster.agent?.isGone).toBe(false)
    })

    describe('with a kube-apiserver that advertises the bind address', () => {
      beforeAll(async () => {
        await cluster.startApiserver(
          '--endpoint-reconciler-type=lease',
          `--advertise-address=${addresses.bind}`,
        )
        await cluster.createPod()
        const config = await readFile(cluster.kubeconfig, 'utf8')
        nodeKubeconfig = join(cluster.lab.directory, 'node.kubeconfig')
        await writeFile(
          nodeKubeconfig,
          config.replace('https://127.0.0.1', `https://${addresses.bind}`),
        )
      })

      test('the node reaches nothing of the control plane but the agent port', async () => {
        const reach = (port: number) => openProbe(cluster.node, addresses.server, port, 'leave')
        expect(await reach(ports.agent)).toMatchObject({ outcome: 'open' })
        for (const port of [ports.api, ports.etcd, 8133, 8134]) {
          expect(await reach(port)).toMatchObject({ outcome: 'ECONNREFUSED' })
        }
      })

      test("kubectl on the node works, and sees the API server's own certificate [TUN-R18, TUN-R8]", async () => {
        expect(await eventually('kubectl', () => onNode('get', 'pods', '-o', 'name'))).toBe(
          'pod/web\n',
        )
        const { stdout } = await cluster.run(cluster.node, [
          'sh',
          '-c',
          'openssl s_client -connect "$0" </dev/null 2>/dev/null | openssl x509',
          `${addresses.bind}:${ports.api}`,
        ])
        const own = await readFile(join(cluster.directory, 'pki', 'apiserver.crt'))
        expect(new X509Certificate(stdout).fingerprint256).toBe(
          new X509Certificate(own).fingerprint256,
        )
      })

      test('a target that is not on the allow-list is refused at once [TUN-R20]', async () => {
        const { bytes, ms } = await openProbe(cluster.node, addresses.bind, refusedPort)
        expect(bytes).toBe(0)
        expect(ms).toBeLessThan(1_000)
        // The server could have reached it: etcd is there.
        const there = await openProbe(cluster.controlPlane, '127.0.0.1', ports.etcd, 'leave')
        expect(there).toMatchObject({ outcome: 'open' })
      })

      test('another address of the node does not answer [TUN-R3]', async () => {
        for (const host of ['127.0.0.1', addresses.node, addresses.pod]) {
          expect(await openProbe(cluster.node, host, ports.api)).toMatchObject({
            outcome: 'ECONNREFUSED',
          })
        }
      })

      test('a pod with in-cluster configuration reaches the API by the Service [TUN-R11]', async () => {
        const endpoints = JSON.parse(
          await cluster.kubectl('get', 'endpoints', 'kubernetes', '-o', 'json'),
        )
        const [subset] = endpoints.subsets
        const endpoint = `${subset.addresses[0].ip}:${subset.ports[0].port}`
        expect(endpoint).toBe(`${addresses.bind}:${ports.api}`)
        await cluster
          .start(cluster.node, [
            process.execPath,
            '-e',
            serviceForwarder,
            '--',
            `${addresses.service}:443`,
            endpoint,
          ])
          .said(/^listening/)
        await cluster.kubectl('create', 'serviceaccount', 'reader')
        const toAdmin = ['--clusterrole=cluster-admin', '--serviceaccount=default:reader']
        await cluster.kubectl('create', 'clusterrolebinding', 'reader', ...toAdmin)
        const files = join(cluster.lab.directory, 'serviceaccount')
        await mkdir(files)
        await writeFile(join(files, 'token'), await cluster.kubectl('create', 'token', 'reader'))
        await writeFile(join(files, 'namespace'), 'default')
        await writeFile(
          join(files, 'ca.crt'),
          await readFile(join(cluster.directory, 'pki', 'ca.crt')),
        )
        const place = '/run/secrets/kubernetes.io/serviceaccount'
        const inPod = `mount -t tmpfs none /run; mkdir -p ${place}; cp "$0"/* ${place}; exec "$@"`
        const { stdout, stderr } = await cluster.run(cluster.node, [
          'env',
          'KUBECONFIG=',
          'HOME=/nonexistent',
          'KUBERNETES_SERVICE_PORT=443',
          `KUBERNETES_SERVICE_HOST=${addresses.service}`,
          'unshare',
          '-m',
          'sh',
          '-ec',
          inPod,
          files,
          pathOf('kubectl-1.36'),
          'get',
          'pods',
          '-o',
          'name',
          '--cache-dir',
          join(cluster.lab.directory, 'pod-cache'),
        ])
        expect({ stdout, stderr }).toEqual({ stdout: 'pod/web\n', stderr: '' })
      })

      test('a kubelet bootstraps by a kubeconfig that names the bind address, and works [TUN-R12]', async () => {
        await allowBootstrap(cluster)
        const kubeconfig = await bootstrapNode(cluster, 'node-a')
        const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-a' } }
        const file = await cluster.write('node.json', node)
        await cluster.kubectlIn(cluster.node, kubeconfig, 'create', '-f', file)
        expect(await cluster.kubectl('get', 'nodes', '-o', 'name')).toBe('node/node-a\n')
      })

      test('both directions work at the same time [TUN-I10, TUN-R9]', async () => {
        const rounds = Array.from({ length: 5 }, (_, round) => `at-once-${round}`)
        const [fromNode, fromApi] = await Promise.all([
          Promise.all(rounds.map(() => onNode('get', 'pods', '-o', 'name'))),
          Promise.all(rounds.map((round) => cluster.podAnswers(round))),
        ])
        expect(fromNode).toEqual(rounds.map(() => 'pod/web\n'))
        expect(fromApi).toEqual(rounds.map((round) => `the pod answers /${round}`))
      })

      test('100 MiB each way at once arrive with equal hashes, and the other direction goes on [TUN-R7, TUN-R10]', async () => {
        const load = pathOf('tunnel-load')
        const target = [load, 'target', '--listen', bulkTarget]
        await cluster.start(cluster.controlPlane, target).said(/^127/)
        const move = (mode: string) =>
          cluster.run(cluster.node, [
            load,
            mode,
            '--front',
            'tcp',
            '--address',
            `${addresses.bind}:${bulkPort}`,
            '--bytes',
            String(100 << 20),
            '--hash',
          ])
        const [up, down, answer] = await Promise.all([
          move('upload'),
          move('download'),
          cluster.podAnswers('beside-bulk'),
        ])
        expect([up.stderr, down.stderr]).toEqual(['', ''])
        expect(answer).toBe('the pod answers /beside-bulk')
      })
    })
  },
)
