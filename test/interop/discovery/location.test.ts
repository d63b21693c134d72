import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  clusterLocation,
  loadContext,
  makeKubeconfig,
  renderKubeconfig,
  withLocation,
} from '../../../src/kubeconfig/index.ts'
import { parseCertificates, privateKeyPem, spkiPin } from '../../../src/pki/index.ts'
import { eventually } from '../../support/eventually.ts'
import { runInProcess } from '../../support/in-process-command.ts'
import { type InProcessServer, startInProcess } from '../../support/in-process-server.ts'
import { kubectlAt, run } from '../../support/kubectl.ts'
import { findKubectl, findPeer, pathOrReason } from '../../support/peers.ts'

const kubectls = ['1.36', '1.31'].map((version) => ({
  version,
  path: pathOrReason(findKubectl(version)),
}))
const kubeadm = pathOrReason(findPeer('kubeadm-1.36'))

let server: InProcessServer
let scratch: string
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'sallyport-location-'))
  server = await startInProcess()
})
afterAll(async () => {
  await server.close()
  await rm(scratch, { recursive: true, force: true })
})

/** A kubeconfig of an administrator, with a location that has everything. */
async function writeKubeconfig(path: string): Promise<void> {
  const { pki, url } = server.serving
  const issued = await pki.issueClient({ commonName: 'ada', organizations: ['system:masters'] })
  const config = makeKubeconfig({
    clusterName: 'here',
    server: url,
    caPem: pki.clusterCa.bundlePem,
    userName: 'ada',
    clientCertPem: issued.certPem,
    clientKeyPem: privateKeyPem(issued.key),
  })
  const [[name, cluster] = ['', { server: '' }]] = config.clusters
  const located = withLocation(cluster, {
    ...clusterLocation(cluster),
    addresses: [url, 'https://127.0.0.1:1'],
    clusterId: 'c0ffee00-0000-4000-8000-000000000000',
    systemRoots: true,
  })
  await writeFile(path, await renderKubeconfig({ ...config, clusters: new Map([[name, located]]) }))
}

describe.each(kubectls)(
  'kubectl $version reads a location of ours [DISC-R49]',
  ({ version, path }) => {
    test.skipIf(!path)('as any other kubeconfig, and keeps what it does not know', async () => {
      const file = join(scratch, `kubeconfig-${version}`)
      await writeKubeconfig(file)
      const kubectl = kubectlAt(path ?? '', file, join(scratch, `cache-${version}`))
      expect(await kubectl('get namespace default -o name')).toBe('namespace/default\n')
      const before = clusterLocation((await loadContext({ explicitPath: file, home: '' })).cluster)
      await kubectl('config set-context --current --namespace=kube-public')
      await kubectl('config set-cluster here --tls-server-name=kubernetes')
      const { cluster, namespace } = await loadContext({ explicitPath: file, home: '' })
      expect([namespace, cluster.tlsServerName]).toEqual(['kube-public', 'kubernetes'])
      expect(clusterLocation(cluster)).toEqual(before)
      expect(before.addresses).toHaveLength(2)
      expect(await kubectl('get configmap cluster-info -o name')).toBe('configmap/cluster-info\n')
    })

    test.skipIf(!path)('and so does a file that was refreshed', async () => {
      const file = join(scratch, `refreshed-${version}`)
      await writeFile(file, await readFile(server.serving.adminKubeconfig))
      const refresh = ['cluster-info', 'refresh', '--kubeconfig', file]
      expect((await runInProcess(refresh)).stdout).toContain('refreshed')
      const kubectl = kubectlAt(path ?? '', file, join(scratch, `cache-${version}`))
      expect(await kubectl('get namespace default -o name')).toBe('namespace/default\n')
    })
  },
)

describe('the CA is replaced under stock programs [DISC-S14]', () => {
  const [newest] = kubectls
  const kubectl = newest?.path
  const rotate = async (...args: string[]): Promise<void> => {
    const call = ['pki', 'rotate-ca', ...args, '--data-dir', server.dataDirectory]
    const { code, stderr } = await runInProcess(call)
    if (code !== 0) throw new Error(stderr)
  }
  const json = async <T>(...args: string[]): Promise<T> => {
    const call = [...args, '--output', 'json', '--data-dir', server.dataDirectory]
    return JSON.parse((await runInProcess(call)).stdout) as T
  }
  /** A kubeconfig that trusts the roots of one moment. */
  const trusting = async (name: string): Promise<string> => {
    const file = join(scratch, name)
    await writeFile(file, await readFile(server.serving.adminKubeconfig))
    return file
  }
  const works = async (file: string) => {
    const outcome = await kubectlAt(kubectl ?? '', file, join(scratch, 'cache')).outcome(
      'get --raw /version',
    )
    return outcome.code === 0 ? 'works' : outcome.stderr
  }
  const preflight = async (...pins: string[]) => {
    const { token, id } = await json<{ token: string; id: string }>('token', 'create')
    await eventually('signed', async () => {
      const { signedBy } = await json<{ signedBy: string[] }>('cluster-info', 'show')
      return signedBy.includes(id)
    })
    const flags = pins.flatMap((pin) => ['--discovery-token-ca-cert-hash', pin])
    const where = [`127.0.0.1:${server.port}`, '--token', token, ...flags]
    const rest = ['--ignore-preflight-errors=all', '--node-name=n1', '--cri-socket=unix:///no.sock']
    return run(kubeadm ?? '', ['join', 'phase', 'preflight', ...where, ...rest, '--v=1'])
  }
  const rootPin = (index: number): string => {
    const root = parseCertificates(server.serving.pki.clusterCa.bundlePem)[index]
    return root ? spkiPin(root) : 'none'
  }

  test.skipIf(!kubectl || !kubeadm)(
    'kubectl with the first root alone works until that is dropped; kubeadm joins with either pin',
    async () => {
      const first = await trusting('first')
      const oldPin = rootPin(0)
      await rotate('begin')
      expect(await works(first)).toBe('works')
      const newPin = rootPin(1)
      await rotate('switch')
      expect(rootPin(0)).toBe(newPin)
      expect(await works(first)).toBe('works')
      const both = await trusting('both')
      expect(await works(both)).toBe('works')
      for (const pin of [oldPin, newPin]) {
        const { code, stdout, stderr } = await preflight(pin)
        expect([code, code === 0 ? '' : stdout + stderr]).toEqual([0, ''])
      }
      await rotate('finish', '--yes')
      expect(await works(first)).toMatch(/x509|certificate signed by unknown authority/)
      await eventually('the new root alone is enough', async () => {
        return (await works(await trusting('last'))) === 'works'
      })
    },
  )
})
