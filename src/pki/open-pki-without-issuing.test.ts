import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { silentLogger } from '../core/index.ts'
import {
  der,
  extension,
  type LabCertificate,
  labCertificate,
  labNow,
  named,
  oid,
  usage,
} from './certificate-lab.suite.ts'
import { generateEcKey, privateKeyPem } from './keys.ts'
import { openPki } from './pki.ts'

const libraryIsLoaded = () => 'getMetadata' in Reflect

test('a start that finds its certificates does not load the library that writes them', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'pki-'))
  const put = async (name: string, made: LabCertificate) => {
    await writeFile(join(directory, `${name}.crt`), made.certificate.toString())
    await writeFile(join(directory, `${name}.key`), privateKeyPem(made.key).reveal(), {
      mode: 0o600,
    })
  }
  const ca = await labCertificate({ subject: named('kubernetes'), ca: true })
  await put('ca', ca)
  await put('front-proxy-ca', await labCertificate({ subject: named('front'), ca: true }))
  const names = extension(oid('551d11'), false, der(0x30, der(0x82, 'localhost')))
  const order = { issuer: ca, subject: named('kube-apiserver'), usages: [usage.serverAuth] }
  await put('apiserver', await labCertificate({ ...order, extensions: [names] }))
  await writeFile(join(directory, 'sa.key'), privateKeyPem(await generateEcKey()).reveal(), {
    mode: 0o600,
  })

  const clock = { now: () => labNow, monotonic: () => 0 }
  const pki = await openPki(directory, { clock, log: silentLogger })
  expect(await pki.ensureServing(['localhost'])).toBe(false)
  expect(libraryIsLoaded()).toBe(false)
  await pki.issueClient({ commonName: 'jane' })
  expect(libraryIsLoaded()).toBe(true)
  await rm(directory, { recursive: true })
})
