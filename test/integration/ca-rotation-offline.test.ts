import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseCertificates } from '../../src/pki/index.ts'
import { eventually } from '../support/eventually.ts'
import { runInProcess } from '../support/in-process-command.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

let directory: string
let dataDirectory: string
let server: InProcessServer | undefined
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-rotate-offline-'))
  dataDirectory = join(directory, 'data')
}, 60_000)
afterAll(async () => {
  await server?.close()
  await rm(directory, { recursive: true, force: true })
})

const flags = ['--tunnel', '--tunnel-agent-port', '0', '--tunnel-local-agent']
const start = async (): Promise<InProcessServer> => {
  server = await startInProcess({ dataDirectory, flags })
  return server
}
const rotate = async (...args: string[]) => {
  const call = ['pki', 'rotate-ca', ...args, '--data-dir', dataDirectory, '--output', 'json']
  const { stdout } = await runInProcess(call)
  return JSON.parse(stdout) as Record<string, unknown> & { error?: { code: string } }
}
const inPki = (name: string): Promise<string> => readFile(join(dataDirectory, 'pki', name), 'utf8')

describe('the CA is replaced between two runs of the server [DISC-S14]', {
  timeout: 60_000,
}, () => {
  test('the files change, and the next start takes them over', async () => {
    const first = (await start()).serving.pki.clusterCa.certificate
    await server?.halt()
    expect(await rotate('begin')).toMatchObject({ stage: 'begun', followed: false })
    expect(await rotate('switch')).toMatchObject({ stage: 'switched', followed: false })
    const refused = await rotate('finish', '--yes')
    expect(refused.error?.code).toBe('CA_ROTATION_NOT_FOLLOWED')
    const { pki } = (await start()).serving
    const { certificate } = pki.clusterCa
    expect(certificate.fingerprint256).not.toBe(first.fingerprint256)
    const [shown, cross] = parseCertificates(await inPki('apiserver.crt'))
    expect(shown?.verify(certificate.publicKey)).toBe(true)
    expect(cross?.verify(first.publicKey)).toBe(true)
  })

  test('so do the certificates of the tunnel and its agent, and finish works', async () => {
    const ca = new X509Certificate(await inPki('ca.crt'))
    await eventually('the agent has a certificate of the new CA', async () =>
      new X509Certificate(await inPki('tunnel-agent.pem')).verify(ca.publicKey),
    )
    const list = await rotate('finish')
    expect(list.error?.code).toBe('NOT_CONFIRMED')
    expect(await rotate('finish', '--yes')).toMatchObject({ stage: 'none', followed: true })
    await eventually(
      'the old CA vouches no longer',
      async () => parseCertificates(await inPki('apiserver.crt')).length === 1,
    )
    expect(await rotate('status')).toMatchObject({ stage: 'none', followed: true })
  })

  test('two at the same time do not both change it', async () => {
    const [one, other] = await Promise.all([rotate('begin'), rotate('begin')])
    const codes = [one, other].map(({ stage, error }) => stage ?? error?.code)
    expect(codes).toContain('begun')
    expect(codes.filter((code) => code !== 'begun')).toEqual([
      expect.stringMatching(/CA_ROTATION_(BUSY|OUT_OF_TURN)/),
    ])
    expect(await rotate('cancel')).toMatchObject({ stage: 'none', followed: true })
    expect(parseCertificates(await inPki('ca.crt'))).toHaveLength(1)
  })
})
