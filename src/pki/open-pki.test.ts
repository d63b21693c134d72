import { X509Certificate } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { silentLogger } from '../core/index.ts'
import { generateEcKey, publicKeyPem } from './keys.ts'
import { openPki } from './pki.ts'
import { verifyClientCertificate } from './verify-certificate.ts'

const dayMs = 24 * 60 * 60_000
const sans = ['kubernetes', 'kubernetes.default.svc', '127.0.0.1', '::1', '10.96.0.1']

let directory: string
let now: number
const options = { clock: { now: () => now, monotonic: () => 0 }, log: silentLogger }
const at = (name: string) => join(directory, name)
const read = async (name: string) => readFile(at(name), 'utf8')
const serving = async () => new X509Certificate(await read('apiserver.crt'))
const snapshot = async () =>
  Object.fromEntries(
    await Promise.all(
      (await readdir(directory)).map(async (name) => [name, await read(name).catch(() => '')]),
    ),
  )

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

describe('a second start', () => {
  test('finds everything again and issues nothing', async () => {
    const names = ['ca.crt', 'ca.key', 'front-proxy-ca.crt', 'sa.key', 'apiserver.crt']
    await (await openPki(directory, options)).ensureServing(sans)
    const before = await Promise.all(names.map(read))
    const again = await openPki(directory, options)
    expect(await again.ensureServing(sans)).toBe(false)
    expect(await Promise.all(names.map(read))).toEqual(before)
  })

  test('completes a first start that was cut off after the key of the CA', async () => {
    await openPki(directory, options)
    await rm(at('ca.crt'))
    const key = await read('ca.key')
    const pki = await openPki(directory, options)
    expect(await read('ca.key')).toBe(key)
    expect(pki.clusterCa.certificate.ca).toBe(true)
  })

  test.each([
    [
      'the key of another CA',
      async () => writeFile(at('ca.key'), await read('front-proxy-ca.key')),
      'PKI_MISMATCH',
      /ca\.key is not the key of a certificate in .*ca\.crt/,
    ],
    [
      'a CA certificate without its key and its file, while one that it signed is there',
      async () => {
        await rm(at('ca.crt'))
        await rm(at('ca.key'))
      },
      'PKI_INCOMPLETE',
      /ca\.crt is missing, but .*apiserver\.crt, which it has signed, is there/,
    ],
    [
      'a CA certificate that is missing, while one that it signed is there',
      async () => rm(at('ca.crt')),
      'PKI_INCOMPLETE',
      /ca\.crt is missing/,
    ],
    [
      'garbage in place of the CA certificate',
      async () => writeFile(at('ca.crt'), 'garbage'),
      'PKI_INVALID',
      /ca\.crt is not a certificate file: there is no certificate in it/,
    ],
    [
      'garbage in place of a key',
      async () => writeFile(at('ca.key'), 'secret garbage'),
      'PKI_INVALID',
      /ca\.key is not an unencrypted private key/,
    ],
    [
      'a certificate that is not a CA in place of the CA',
      async () => writeFile(at('ca.crt'), await read('apiserver.crt')),
      'PKI_INVALID',
      /"CN=kube-apiserver" is not a CA certificate/,
    ],
    [
      'a serving certificate of another CA',
      async () => {
        await writeFile(at('ca.crt'), await read('front-proxy-ca.crt'))
        await writeFile(at('ca.key'), await read('front-proxy-ca.key'))
      },
      'PKI_MISMATCH',
      /apiserver\.crt was not signed by the CA in .*ca\.crt/,
    ],
    [
      'the key of another serving certificate',
      async () => writeFile(at('apiserver.key'), await read('ca.key')),
      'PKI_MISMATCH',
      /apiserver\.key is not the key of the certificate/,
    ],
    [
      'a serving certificate without its key',
      async () => rm(at('apiserver.key')),
      'PKI_INCOMPLETE',
      /its key .*apiserver\.key is missing/,
    ],
    [
      'a service account key whose public half is another',
      async () => writeFile(at('sa.pub'), publicKeyPem(await generateEcKey())),
      'PKI_MISMATCH',
      /sa\.pub is not the public half of .*sa\.key/,
    ],
    [
      'the public half of a service account key that is missing',
      async () => rm(at('sa.key')),
      'PKI_INCOMPLETE',
      /sa\.key is missing, but its public half .*sa\.pub is there/,
    ],
    [
      'a file that is a directory',
      async () => {
        await rm(at('ca.crt'))
        await mkdir(at('ca.crt'))
      },
      'PKI_UNREADABLE',
      /cannot read .*ca\.crt: EISDIR/,
    ],
  ])('refuses %s and changes nothing', async (_name, damage, code, message) => {
    await (await openPki(directory, options)).ensureServing(sans)
    await damage()
    const before = await snapshot()
    const start = async () => (await openPki(directory, options)).ensureServing(sans)
    await expect(start()).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
    expect(await snapshot()).toEqual(before)
  })

  test('refuses a CA that has expired', async () => {
    await openPki(directory, options)
    now += 3651 * dayMs
    await expect(openPki(directory, options)).rejects.toMatchObject({ code: 'PKI_EXPIRED' })
  })

  test('refuses a CA from the future, and points at the clock', async () => {
    await openPki(directory, options)
    now -= dayMs
    await expect(openPki(directory, options)).rejects.toMatchObject({
      code: 'PKI_NOT_YET_VALID',
      hint: expect.stringContaining('clock'),
    })
  })
})

describe('the serving certificate', () => {
  const reissued = async (change: () => void | Promise<void>, names = sans) => {
    await (await openPki(directory, options)).ensureServing(sans)
    const before = await serving()
    await change()
    const issued = await (await openPki(directory, options)).ensureServing(names)
    expect((await serving()).serialNumber !== before.serialNumber).toBe(issued)
    return issued
  }

  test.each([
    ['just before two thirds of its life', 243, false],
    ['after two thirds of its life', 244, true],
    ['after its end', 400, true],
  ])('%s (%i days): renewed is %s [GND-R41]', async (_name, days, renewed) => {
    expect(await reissued(() => void (now += days * dayMs))).toBe(renewed)
  })

  test.each([
    ['a DNS name', 'api.example.org'],
    ['an IPv4 address', '192.0.2.1'],
    ['an IPv6 address', '2001:db8::1'],
  ])('is issued anew when it lacks %s', async (_name, missing) => {
    expect(await reissued(() => {}, [...sans, missing])).toBe(true)
    expect((await serving()).subjectAltName).toContain(missing.includes(':') ? 'DB8' : missing)
  })

  test('stays when it has more names than needed, however they are spelt', async () => {
    expect(await reissued(() => {}, ['Kubernetes', '0:0:0:0:0:0:0:1'])).toBe(false)
  })

  test('does not name the zone of an address, nor an address twice', async () => {
    const names = ['fe80::1%eth0', 'fe80::1', '127.0.0.1', '127.0.0.1']
    await (await openPki(directory, options)).ensureServing(names)
    expect((await serving()).subjectAltName).toBe(
      'IP Address:FE80:0:0:0:0:0:0:1, IP Address:127.0.0.1',
    )
    expect(await (await openPki(directory, options)).ensureServing(names)).toBe(false)
  })

  test.each(['a b', 'a\n', 'bücher.example', '', '.', '1.2.3.4/24', 'https://a', 'a..b'])(
    'is not issued for %j',
    async (name) => {
      const pki = await openPki(directory, options)
      await expect(pki.ensureServing([name])).rejects.toMatchObject({ code: 'SAN_INVALID' })
    },
  )

  test('is issued anew for the same key when the clock went back', async () => {
    await (await openPki(directory, options)).ensureServing(sans)
    const key = await read('apiserver.key')
    now += 10 * dayMs
    await rm(at('apiserver.crt'))
    await (await openPki(directory, options)).ensureServing(sans)
    now -= 9 * dayMs
    expect(await (await openPki(directory, options)).ensureServing(sans)).toBe(true)
    expect(await read('apiserver.key')).toBe(key)
  })
})

describe('without the key of the CA', () => {
  const open = async () => {
    await (await openPki(directory, options)).ensureServing(sans)
    await rm(at('ca.key'))
    return openPki(directory, options)
  }

  test('what is there is used', async () => {
    expect(await (await open()).ensureServing(sans)).toBe(false)
  })

  test('a certificate that is due is used until its end, with a warning', async () => {
    const pki = await open()
    now += 300 * dayMs
    const warnings: string[] = []
    const log = { ...silentLogger, warn: (_fields: object, text: string) => warnings.push(text) }
    const again = await openPki(directory, { ...options, log })
    expect(await again.ensureServing(sans)).toBe(false)
    expect(warnings).toEqual([expect.stringContaining('should be renewed')])
    now += 100 * dayMs
    await expect(pki.ensureServing(sans)).rejects.toMatchObject({ code: 'CA_KEY_MISSING' })
  })

  test('nothing can be issued, and the message says what to do', async () => {
    const pki = await open()
    await expect(pki.issueClient({ commonName: 'jane' })).rejects.toMatchObject({
      code: 'CA_KEY_MISSING',
      message: 'the key of the cluster CA is not here',
      hint: expect.stringContaining('put the key beside'),
    })
  })
})

test('a client certificate names its user and groups and lives as long as asked for [GND-R77]', async () => {
  const pki = await openPki(directory, options)
  const jane = await pki.issueClient({ commonName: 'jane', organizations: ['dev', 'ops'] }, dayMs)
  expect(
    verifyClientCertificate([jane.certificate], [pki.clusterCa.certificate], now),
  ).toMatchObject({
    commonName: 'jane',
    organizations: ['dev', 'ops'],
    notAfter: now + dayMs,
  })
  expect(jane.certificate.checkPrivateKey(jane.key)).toBe(true)
  expect(jane.certificate.serialNumber).toMatch(/^[4-7][0-9A-F]{31}$/)
})

test('a place that cannot be written is named', async () => {
  await writeFile(directory, 'a file where the directory should be')
  await expect(openPki(directory, options)).rejects.toMatchObject({
    code: 'PKI_UNWRITABLE',
    message: expect.stringContaining(directory),
  })
  await rm(directory)
})
