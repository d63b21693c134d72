import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { type InProcessServer, startInProcess } from '../../support/in-process-server.ts'
import { type Kubectl, kubectlAt, run } from '../../support/kubectl.ts'
import { findKubectl, findProgram, pathOrReason } from '../../support/peers.ts'

const kubectlPath = pathOrReason(findKubectl('1.36'))
const openssl = pathOrReason(findProgram('openssl'))

describe.skipIf(!kubectlPath || !openssl)('a request that openssl made', () => {
  let server: InProcessServer
  let kubectl: Kubectl
  let scratch = ''
  beforeAll(async () => {
    server = await startInProcess()
    scratch = await mkdtemp(join(tmpdir(), 'sallyport-csr-'))
    kubectl = kubectlAt(kubectlPath ?? '', server.serving.adminKubeconfig, join(scratch, 'cache'))
  })
  afterAll(async () => {
    await server.close()
    await rm(scratch, { recursive: true, force: true })
  })

  async function request(name: string, key: readonly string[], subject: string): Promise<void> {
    const files = ['-keyout', join(scratch, `${name}.key`), '-out', join(scratch, `${name}.csr`)]
    const args = ['req', '-new', '-nodes', ...key, ...files, '-subj', subject]
    const made = await run(openssl ?? '', args)
    expect([made.code, made.stderr]).toEqual([0, expect.anything()])
    await kubectl(
      'create -f -',
      JSON.stringify({
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { name },
        spec: {
          request: await readFile(join(scratch, `${name}.csr`), 'base64'),
          signerName: 'kubernetes.io/kube-apiserver-client',
          usages: ['client auth'],
          expirationSeconds: 3600,
        },
      }),
    )
  }

  test.each([
    ['ec', ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256']],
    ['rsa', ['-newkey', 'rsa:2048']],
  ])(
    '[DISC-T13] with an %s key is signed once kubectl approves it, and works',
    async (name, key) => {
      await request(name, key, `/O=dev/CN=jane-${name}`)
      expect(await kubectl(`get csr ${name}`)).toMatch(/Pending/)
      await kubectl(`certificate approve ${name}`)
      const certificate = await eventually('signed', async () => {
        const text = await kubectl(`get csr ${name} -o jsonpath={.status.certificate}`)
        return text === '' ? undefined : Buffer.from(text, 'base64').toString()
      })
      expect(await kubectl(`get csr ${name}`)).toMatch(/1h.*Approved,Issued|60m.*Approved,Issued/)
      const who = await server
        .as({ cert: certificate, key: await readFile(join(scratch, `${name}.key`), 'utf8') })
        .request('/apis/authentication.k8s.io/v1/selfsubjectreviews', {
          method: 'POST',
          body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
        })
      expect(who.object['status']).toMatchObject({
        userInfo: { username: `jane-${name}`, groups: ['dev', 'system:authenticated'] },
      })
    },
  )

  test('[DISC-T13] is not signed once kubectl denies it', async () => {
    await request('no', ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'], '/CN=joe')
    await kubectl('certificate deny no')
    expect(await kubectl('get csr no')).toMatch(/Denied/)
    expect(await kubectl('get csr no -o jsonpath={.status.certificate}')).toBe('')
  })
})
