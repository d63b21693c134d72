import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { silentLogger } from '../core/index.ts'
import { openPki } from './open-pki.ts'

const dayMs = 24 * 60 * 60_000
const sans = ['kubernetes', 'kubernetes.default.svc', '127.0.0.1', '::1', '10.96.0.1']

let directory: string
let now: number
const options = { clock: { now: () => now, monotonic: () => 0 }, log: silentLogger }
const at = (name: string) => join(directory, name)
const read = async (name: string) => readFile(at(name), 'utf8')
const serving = async () => new X509Certificate(await read('apiserver.crt'))

beforeEach(async () => {
  now = Date.parse('2026-03-01T12:00:00Z')
  directory = join(await mkdtemp(join(tmpdir(), 'pki-')), 'pki')
})
afterEach(async () => {
  await rm(join(directory, '..'), { recursive: true })
})

describe('a first start', () => {
  test('makes every file with kubeadm names and the right modes', async () => {
    const pki = await openPki(directory, options)
    expect(await pki.ensureServing(sans)).toBe(true)
    const modes = await Promise.all(
      [
        'ca.crt',
        'ca.key',
        'front-proxy-ca.crt',
        'front-proxy-ca.key',
        'apiserver.crt',
        'apiserver.key',
        'sa.key',
        'sa.pub',
      ].map(async (name) => [name, ((await stat(at(name))).mode & 0o777).toString(8)]),
    )
    expect(Object.fromEntries(modes)).toEqual({
      'ca.crt': '644',
      'ca.key': '600',
      'front-proxy-ca.crt': '644',
      'front-proxy-ca.key': '600',
      'apiserver.crt': '644',
      'apiserver.key': '600',
      'sa.key': '600',
      'sa.pub': '644',
    })
    expect((await stat(directory)).mode & 0o777).toBe(0o700)
  })

  test('issues a serving certificate that names every address and chains to the CA', async () => {
    const pki = await openPki(directory, options)
    await pki.ensureServing(sans)
    const certificate = await serving()
    expect(certificate.verify(pki.clusterCa.certificate.publicKey)).toBe(true)
    expect(certificate.checkIssued(pki.clusterCa.certificate)).toBe(true)
    expect(certificate.publicKey.asymmetricKeyDetails?.namedCurve).toBe('prime256v1')
    expect(certificate.subjectAltName).toBe(
      'DNS:kubernetes, DNS:kubernetes.default.svc, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, IP Address:10.96.0.1',
    )
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1'])
    expect(certificate.ca).toBe(false)
    expect(Date.parse(certificate.validFrom)).toBe(now - 5 * 60_000)
    expect(Date.parse(certificate.validTo)).toBe(now + 365 * dayMs)
  })
})
