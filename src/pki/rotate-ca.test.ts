import { X509Certificate } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type CaRotationAction, caRotationSteps, readCaRotation, rotateCa } from './ca-rotation.ts'
import { parseCertificates } from './pem.ts'
import { openPki, type PkiOptions } from './pki.ts'
import { verifyClientCertificate } from './verify-certificate.ts'

const now = Date.UTC(2026, 10, 16)
const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
const options: PkiOptions = { clock: { now: () => now, monotonic: () => 0 }, log: silent }
const sans = ['127.0.0.1']

let directory: string
let order: { readonly directory: string; readonly now: number }
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-rotate-ca-'))
  order = { directory, now }
  await (await openPki(directory, options)).ensureServing(sans)
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const read = (name: string) => readFile(join(directory, name), 'utf8')
const open = () => openPki(directory, options)
const done = async (...actions: CaRotationAction[]) => {
  for (const action of actions) {
    await rotateCa(action, order)
    await (await open()).ensureServing(sans)
  }
}
/** Whether TLS clients that trust only this certificate would accept the server. */
const servedTo = async (root: X509Certificate): Promise<boolean> => {
  const chain = parseCertificates(await read('apiserver.crt'))
  const issuedBy = (one: X509Certificate, ca: X509Certificate): boolean =>
    one.checkIssued(ca) && one.verify(ca.publicKey)
  const [leaf, cross] = chain
  if (!leaf) return false
  return issuedBy(leaf, root) || (!!cross && issuedBy(leaf, cross) && issuedBy(cross, root))
}

describe('a CA is replaced in stages [DISC-S14]', () => {
  test('and whoever trusts one of both can verify the server until the old one is dropped', async () => {
    const { certificate: first } = (await open()).clusterCa
    await done('begin')
    const begun = await open()
    const [, second] = parseCertificates(begun.clusterCa.bundlePem)
    if (!second) throw new Error('there is no second root')
    expect(begun.clusterCa.certificate.fingerprint256).toBe(first.fingerprint256)
    expect([await servedTo(first), await servedTo(second)]).toEqual([true, false])
    await done('switch')
    expect([await servedTo(first), await servedTo(second)]).toEqual([true, true])
    expect((await open()).clusterCa.certificate.fingerprint256).toBe(second.fingerprint256)
    await done('finish')
    expect([await servedTo(first), await servedTo(second)]).toEqual([false, true])
    const left = (await readdir(directory)).filter((name) => name.startsWith('ca'))
    expect(left.toSorted()).toEqual(['ca.crt', 'ca.key'])
  })

  test('old client certificates count until then, new ones from the switch on', async () => {
    const accepted = async (certificate: X509Certificate): Promise<boolean> => {
      const roots = parseCertificates(await read('ca.crt'))
      try {
        verifyClientCertificate([certificate], roots, now)
        return true
      } catch {
        return false
      }
    }
    const { certificate: old } = await (await open()).issueClient({ commonName: 'old' })
    await done('begin', 'switch')
    const { certificate: fresh } = await (await open()).issueClient({ commonName: 'new' })
    expect([await accepted(old), await accepted(fresh)]).toEqual([true, true])
    await done('finish')
    expect([await accepted(old), await accepted(fresh)]).toEqual([false, true])
  })

  test('under the names of kubeadm: the first certificate of ca.crt belongs to ca.key, which is private', async () => {
    await done('begin', 'switch')
    const { createPrivateKey } = await import('node:crypto')
    const first = new X509Certificate(await read('ca.crt'))
    expect(first.checkPrivateKey(createPrivateKey(await read('ca.key')))).toBe(true)
    expect((await stat(join(directory, 'ca.key'))).mode & 0o777).toBe(0o600)
  })

  test.each([
    [[], 'switch'],
    [[], 'finish'],
    [[], 'cancel'],
    [['begin'], 'begin'],
    [['begin'], 'finish'],
    [['begin', 'switch'], 'begin'],
    [['begin', 'switch'], 'cancel'],
  ] as const)('after %j, %s is out of turn and changes nothing', async (actions, wrong) => {
    await done(...actions)
    const before = await Promise.all(['ca.crt', 'ca.key'].map(read))
    await expect(rotateCa(wrong, order)).rejects.toMatchObject({ code: 'CA_ROTATION_OUT_OF_TURN' })
    expect(await Promise.all(['ca.crt', 'ca.key'].map(read))).toEqual(before)
  })

  test('and is taken back before the switch without a trace', async () => {
    const before = await read('ca.crt')
    await done('begin', 'cancel')
    expect(await read('ca.crt')).toBe(before)
    expect((await readdir(directory)).filter((name) => name.startsWith('ca-'))).toEqual([])
  })

  test('again and again', async () => {
    await done('begin', 'switch', 'finish', 'begin', 'switch', 'finish')
    expect(parseCertificates(await read('ca.crt'))).toHaveLength(1)
  })

  test('is not finished before the server shows a certificate of the new CA', async () => {
    await rotateCa('begin', order)
    await rotateCa('switch', order)
    await expect(rotateCa('finish', order)).rejects.toMatchObject({
      code: 'CA_ROTATION_NOT_FOLLOWED',
    })
    expect((await readCaRotation(directory)).stage).toBe('switched')
  })

  const cuts = (['begin', 'switch', 'finish', 'cancel'] as const).flatMap((action) =>
    caRotationSteps[action].map((_, index) => [action, index + 1] as const),
  )
  test.each(cuts)(
    'cut off in %s after step %i, it works and can be completed',
    async (action, count) => {
      const earlier = {
        begin: [],
        switch: ['begin'],
        finish: ['begin', 'switch'],
        cancel: ['begin'],
      }
      await done(...(earlier[action] as CaRotationAction[]))
      const { certificate: client } = await (await open()).issueClient({ commonName: 'jane' })
      for (const step of caRotationSteps[action].slice(0, count)) await step(order)
      const pki = await open()
      await pki.ensureServing(sans)
      const issued = await pki.issueClient({ commonName: 'jane' })
      const roots = parseCertificates(pki.clusterCa.bundlePem)
      expect(() => verifyClientCertificate([issued.certificate], roots, now)).not.toThrow()
      expect(() => verifyClientCertificate([client], roots, now)).not.toThrow()
      const { stage } = await readCaRotation(directory)
      const rest = {
        none: ['begin', 'switch', 'finish'],
        begun: ['switch', 'finish'],
        switched: ['finish'],
      }
      await done(...(rest[stage] as CaRotationAction[]))
      expect(parseCertificates(await read('ca.crt'))).toHaveLength(1)
      expect((await readdir(directory)).filter((name) => name.startsWith('ca-'))).toEqual([])
    },
  )
})
