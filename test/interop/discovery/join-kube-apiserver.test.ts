import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../../bench/free-port.ts'
import { generateBootstrapToken, tokenText } from '../../../src/bootstrap/index.ts'
import { parseCertificates, spkiPin } from '../../../src/pki/index.ts'
import { scratch, startJoin } from '../../integration/join-lab.suite.ts'
import { run } from '../../support/kubectl.ts'
import { LoggedProcess } from '../../support/logged-process.ts'
import { findPeer, findProgram, pathOrReason } from '../../support/peers.ts'

const names = ['kube-apiserver-1.36', 'etcd-3.6', 'kubeadm-1.36', 'kube-controller-manager-1.36']
const peers = [...names, 'kubectl-1.36'].map(findPeer)
const isHere = [...peers, findProgram('openssl')].every((peer) => pathOrReason(peer) !== undefined)
const pathOf = (name: string): string => pathOrReason(findPeer(name)) ?? ''
const runKubeApiserver = fileURLToPath(
  new URL('../../../interop/peers/run-kube-apiserver', import.meta.url),
)

describe.skipIf(!isHere)(
  'a stock kube-apiserver with the controllers of Kubernetes [DISC-C5]',
  () => {
    const token = tokenText(generateBootstrapToken()).reveal()
    let directory: Awaited<ReturnType<typeof scratch>>
    let apiserver: LoggedProcess
    let controllers: LoggedProcess
    let address = ''
    let pin = ''

    const file = (name: string): string => join(directory.path, name)
    const kubectl = (kubeconfig: string, ...args: string[]) =>
      run(pathOf('kubectl-1.36'), ['--kubeconfig', kubeconfig, ...args])

    /** What `kubeadm init` does for those who join. */
    const prepareForJoining = async (kubeconfig: string): Promise<void> => {
      const config = [
        {
          apiVersion: 'kubeadm.k8s.io/v1beta4',
          kind: 'InitConfiguration',
          nodeRegistration: { criSocket: 'unix:///nonexistent.sock', name: 'none' },
          bootstrapTokens: [{ token, groups: ['system:bootstrappers:kubeadm:default-node-token'] }],
        },
        {
          apiVersion: 'kubeadm.k8s.io/v1beta4',
          kind: 'ClusterConfiguration',
          kubernetesVersion: 'v1.36.3',
        },
      ]
      await writeFile(
        file('kubeadm.yaml'),
        config.map((one) => JSON.stringify(one)).join('\n---\n'),
      )
      const phase = ['init', 'phase', 'bootstrap-token', '--skip-token-print']
      const flags = ['--config', file('kubeadm.yaml'), '--kubeconfig', kubeconfig]
      const said = await run(pathOf('kubeadm-1.36'), [...phase, ...flags])
      if (said.code !== 0) throw new Error(said.stderr)
    }

    beforeAll(async () => {
      directory = await scratch()
      const port = await freePort()
      const etcdPort = await freePort(2)
      const ports = ['--port', String(port), '--etcd-port', String(etcdPort)]
      apiserver = new LoggedProcess(runKubeApiserver, ['--dir', directory.path, ...ports])
      const kubeconfig = await apiserver.said(/admin\.kubeconfig$/)
      await prepareForJoining(kubeconfig)
      const ca = file('pki/ca.crt')
      controllers = new LoggedProcess(pathOf('kube-controller-manager-1.36'), [
        `--kubeconfig=${kubeconfig}`,
        '--leader-elect=false',
        '--secure-port=0',
        '--controllers=bootstrap-signer-controller,token-cleaner-controller,certificatesigningrequest-signing-controller,certificatesigningrequest-approving-controller',
        `--cluster-signing-cert-file=${ca}`,
        `--cluster-signing-key-file=${file('pki/ca.key')}`,
      ])
      address = `127.0.0.1:${port}`
      const [root] = parseCertificates(await readFile(ca, 'utf8'))
      pin = root ? spkiPin(root) : ''
    }, 180_000)
    afterAll(async () => {
      await controllers?.stop()
      await apiserver?.stop()
      await directory?.remove()
    })

    test('makes a node of whoever has address, token and pin', async () => {
      const out = file('n1.kubeconfig')
      const said = await startJoin([
        address,
        '--token',
        token,
        '--discovery-token-ca-cert-hash',
        pin,
        '--node-name',
        'n1',
        '--out',
        out,
        '--approval-timeout',
        '60s',
        '--output',
        'json',
      ]).ended
      expect([said.code, said.stderr]).toEqual([
        0,
        expect.stringContaining('signed with the token'),
      ])
      expect(JSON.parse(said.stdout)).toMatchObject({
        did: 'joined',
        username: 'system:node:n1',
        proofs: ['signed-document', 'pins', 'second-fetch'],
        pins: [pin],
      })
      const who = await kubectl(out, 'auth', 'whoami', '-o', 'json')
      expect(JSON.parse(who.stdout)).toMatchObject({
        status: {
          userInfo: {
            username: 'system:node:n1',
            groups: ['system:nodes', 'system:authenticated'],
          },
        },
      })
    }, 120_000)

    test('makes a user of whom its administrator approves with kubectl', async () => {
      const out = file('jane.kubeconfig')
      const args = [
        address,
        '--token',
        token,
        '--as',
        'user',
        'jane',
        '--group',
        'devs',
        '--out',
        out,
      ]
      const joining = startJoin(args)
      await joining.says('kubectl certificate approve user-csr-')
      const admin = file('admin.kubeconfig')
      const { stdout } = await kubectl(admin, 'get', 'csr', '-o', 'name')
      const request = stdout.split('\n').find((name) => name.includes('/user-csr-')) ?? ''
      await kubectl(admin, 'certificate', 'approve', request.replace(/^.*\//, ''))
      expect(await joining.ended).toMatchObject({ code: 0 })
      const who = await kubectl(out, 'auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}')
      expect(who.stdout).toBe('jane')
    }, 120_000)

    test.each([
      ['a wrong secret', () => `${token.slice(0, 7)}${'0'.repeat(16)}`, [], 'SIGNATURE_WRONG'],
      ['an unknown token', () => `zzzzzz.${'0'.repeat(16)}`, [], 'TOKEN_UNKNOWN'],
      ['signed requests only', () => token, ['--require-jwt'], 'AUTH_REFUSED'],
      [
        'a wrong pin',
        () => token,
        ['--discovery-token-ca-cert-hash', `sha256:${'0'.repeat(64)}`],
        'PIN_MISMATCH',
      ],
    ])('refuses %s with its own cause', async (_name, secret, flags, code) => {
      const args = [
        address,
        '--token',
        secret(),
        '--discovery-only',
        '--out',
        '-',
        '--timeout',
        '0',
      ]
      const said = await startJoin([...args, ...flags, '--output', 'json']).ended
      expect([said.code, JSON.parse(said.stdout)]).toMatchObject([1, { error: { code } }])
    })
  },
)
