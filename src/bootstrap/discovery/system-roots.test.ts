import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemRoots } from './system-roots.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-roots-'))
  await writeFile(join(directory, 'system.pem'), 'of the system')
  await writeFile(join(directory, 'extra.pem'), 'of the company')
})
afterAll(() => rm(directory, { recursive: true, force: true }))

test('there are roots on every system [DISC-R5]', async () => {
  const roots = await systemRoots()
  expect(roots.join('\n')).toContain('-----BEGIN CERTIFICATE-----')
})

test('SSL_CERT_FILE takes the place of them, as in other programs', async () => {
  expect(await systemRoots({ SSL_CERT_FILE: join(directory, 'system.pem') })).toEqual([
    'of the system',
  ])
})

test('NODE_EXTRA_CA_CERTS adds to them, as in Node.js', async () => {
  const roots = await systemRoots({
    SSL_CERT_FILE: join(directory, 'system.pem'),
    NODE_EXTRA_CA_CERTS: join(directory, 'extra.pem'),
  })
  expect(roots).toEqual(['of the system', 'of the company'])
})

test('files that are not there are passed over', async () => {
  const nowhere = join(directory, 'none')
  const roots = await systemRoots({ SSL_CERT_FILE: nowhere, NODE_EXTRA_CA_CERTS: nowhere })
  expect(roots).toEqual(await systemRoots())
})
