import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { silentLogger } from '../core/index.ts'
import { labCertificate, labNow, named } from './certificate-lab.suite.ts'
import { privateKeyPem } from './keys.ts'
import type { ServingMaterial } from './serving-certificate.ts'
import { openServingCertificate, type ServingCertificate } from './serving-certificate.ts'

const dayMs = 24 * 60 * 60_000
let directory: string
let now: number
let warnings: { text: string; reason: unknown }[]
let errors: string[]
let opened: ServingCertificate[]
const certFile = () => join(directory, 'tls.crt')
const keyFile = () => join(directory, 'tls.key')
const log = {
  ...silentLogger,
  error: (_fields: object, text: string) => errors.push(text),
  warn: (fields: object, text: string) => {
    const reason = 'err' in fields && fields.err instanceof Error ? fields.err.message : undefined
    warnings.push({ text, reason })
  },
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'serving-'))
  now = labNow
  warnings = []
  errors = []
  opened = []
})
afterEach(async () => {
  for (const serving of opened) serving.close()
  await rm(directory, { recursive: true })
})

async function put(name: string, notAfter = labNow + 30 * dayMs): Promise<string> {
  const { certificate, key } = await labCertificate({ subject: named(name), notAfter })
  await writeFile(keyFile(), privateKeyPem(key).reveal())
  await writeFile(certFile(), certificate.toString())
  return certificate.toString()
}
async function open(renew?: () => Promise<unknown>): Promise<ServingCertificate> {
  const clock = { now: () => now, monotonic: () => 0 }
  const source = { certFile: certFile(), keyFile: keyFile(), clock, log }
  const serving = await openServingCertificate(renew ? { ...source, renew } : source)
  opened.push(serving)
  return serving
}
const nextOf = (serving: ServingCertificate) =>
  new Promise<ServingMaterial>((resolve) => serving.onNew(resolve))

test('a certificate that replaces the files is taken over without a restart [GND-R41]', async () => {
  const first = await put('first')
  const serving = await open()
  expect(serving.current.certPem).toBe(first)
  const next = nextOf(serving)
  const second = await put('second')
  expect((await next).certPem).toBe(second)
  expect(serving.current.certPem).toBe(second)
  expect(serving.current.keyPem.reveal()).toBe(await readFile(keyFile(), 'utf8'))
})

describe('unfit files keep the old certificate and say so [GND-R41]', () => {
  test.each([
    [
      'garbage for the certificate',
      () => writeFile(certFile(), 'garbage'),
      /tls\.crt is not a certificate file: there is no certificate/,
    ],
    [
      'half a certificate',
      async () => writeFile(certFile(), (await readFile(certFile(), 'utf8')).slice(0, 200)),
      /has no END/,
    ],
    [
      'garbage for the key',
      () => writeFile(keyFile(), 'garbage'),
      /tls\.key is not an unencrypted private key/,
    ],
    ['an empty key', () => writeFile(keyFile(), ''), /tls\.key is not an unencrypted private key/],
    [
      'the key of another certificate',
      async () =>
        writeFile(
          keyFile(),
          privateKeyPem((await labCertificate({ subject: named('x') })).key).reveal(),
        ),
      /is not the key of/,
    ],
    ['an expired certificate', async () => void (await put('old', labNow - 1000)), /expired on/],
    ['no key', () => rm(keyFile()), /cannot read .*tls\.key: ENOENT/],
  ])('%s', async (_name, damage, reason) => {
    const first = await put('first')
    const serving = await open()
    serving.close() // the file watch would warn as well
    const replaced: unknown[] = []
    serving.onNew((material) => replaced.push(material))
    await damage()
    await serving.reload()
    expect(serving.current.certPem).toBe(first)
    expect(replaced).toEqual([])
    expect(warnings).toEqual([
      {
        text: 'the new serving certificate is unfit, the old one stays',
        reason: expect.stringMatching(reason),
      },
    ])
  })

  test('and the next good one is taken over', async () => {
    await put('first')
    const serving = await open()
    await writeFile(certFile(), 'garbage')
    const next = nextOf(serving)
    const good = await put('good')
    expect((await next).certPem).toBe(good)
  })
})

test('the same files read again replace nothing', async () => {
  await put('first')
  const serving = await open()
  const replaced: unknown[] = []
  serving.onNew((material) => replaced.push(material))
  await serving.reload()
  expect(replaced).toEqual([])
})

test('each check renews what is due, whatever way the clock jumped [GND-R41]', async () => {
  await put('first', labNow + 30 * dayMs)
  const renew = async () => {
    if (now > labNow + 20 * dayMs) await put('renewed', now + 30 * dayMs)
  }
  const serving = await open(renew)
  const before = serving.current
  await serving.check()
  expect(serving.current).toBe(before)
  now += 300 * dayMs
  await serving.check()
  expect(serving.current.certificate.subject).toBe('CN=renewed')
  expect(warnings).toEqual([])
})

test('a renewal that fails is reported, and the files are read all the same', async () => {
  await put('first')
  const serving = await open(() => Promise.reject(new Error('disk full')))
  serving.close()
  await put('second')
  await serving.check()
  expect(errors).toEqual(['the serving certificate could not be renewed'])
  expect(serving.current.certificate.subject).toBe('CN=second')
})

test('a certificate that nobody renews is complained about before its end', async () => {
  await put('first', labNow + 2 * dayMs)
  const serving = await open()
  await serving.check()
  expect(warnings.map(({ text }) => text)).toEqual(['the serving certificate ends soon'])
})

test('unfit files at the start are an error that names them', async () => {
  await expect(open()).rejects.toMatchObject({
    code: 'SERVING_CERTIFICATE_UNFIT',
    message: expect.stringContaining('tls.crt'),
    hint: expect.stringContaining('tls.key'),
  })
})
