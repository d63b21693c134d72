import { beforeAll, describe, expect, test } from 'vitest'
import {
  der,
  extension,
  type LabCertificate,
  type LabOrder,
  labCertificate,
  labNow,
  named,
  oid,
  usage,
} from './certificate-lab.suite.ts'
import { verifyServerCertificate } from './verify-certificate.ts'

const server = 'kubernetes.default.svc'
const dayMs = 24 * 60 * 60_000
const sans = (...names: readonly string[]): Buffer =>
  extension(oid('551d11'), false, der(0x30, ...names.map((name) => der(0x82, name))))

let ca: LabCertificate
beforeAll(async () => {
  ca = await labCertificate({ subject: named('kubernetes'), ca: true })
})

const issue = (order: Partial<LabOrder>): Promise<LabCertificate> =>
  labCertificate({
    issuer: ca,
    subject: named('kube-apiserver'),
    usages: [usage.serverAuth],
    extensions: [sans('other', server)],
    ...order,
  })

const verdict = (...chain: readonly LabCertificate[]): string => {
  try {
    const certificates = chain.map(({ certificate }) => certificate)
    verifyServerCertificate(certificates, [ca.certificate], { name: server, now: labNow })
    return 'good'
  } catch (error) {
    return (error as { why: string }).why
  }
}

describe('a certificate under the CA', () => {
  test.each<[name: string, order: Partial<LabOrder>, expected: string]>([
    ['of the server is good', {}, 'good'],
    ['for clients is refused', { usages: [usage.clientAuth] }, 'WRONG_USAGE'],
    ['for servers and clients is good', { usages: [usage.serverAuth, usage.clientAuth] }, 'good'],
    ['without a usage is refused', { usages: [] }, 'WRONG_USAGE'],
    ['of another server is refused', { extensions: [sans('node-1')] }, 'WRONG_NAME'],
    ['with a wildcard is refused', { extensions: [sans('*.default.svc')] }, 'WRONG_NAME'],
    [
      'that names it in the subject only is refused',
      { subject: named(server), extensions: [] },
      'WRONG_NAME',
    ],
    ['that is a CA is refused', { ca: true }, 'WRONG_USAGE'],
    ['that has expired is refused', { notAfter: labNow - 1000 }, 'EXPIRED'],
    ['of tomorrow is refused', { notBefore: labNow + 1000 }, 'NOT_YET_VALID'],
    ['signed with SHA-1 is refused', { hash: 'sha1' }, 'WEAK_SIGNATURE'],
  ])('%s', async (_name, order, expected) => {
    expect(verdict(await issue(order))).toBe(expected)
  })
})

describe('a chain', () => {
  test('may have an intermediate CA', async () => {
    const middle = await issue({ subject: named('middle'), ca: true, extensions: [] })
    expect(verdict(await issue({ issuer: middle }), middle)).toBe('good')
  })

  test('through a CA for clients is refused', async () => {
    const middle = await issue({ subject: named('middle'), ca: true, usages: [usage.clientAuth] })
    expect(verdict(await issue({ issuer: middle }), middle)).toBe('WRONG_USAGE')
  })

  test('through a certificate that is no CA is refused', async () => {
    const middle = await issue({ subject: named('middle'), notAfter: labNow + dayMs })
    expect(verdict(await issue({ issuer: middle }), middle)).toBe('UNKNOWN_AUTHORITY')
  })

  test('under another CA is refused', async () => {
    const other = await labCertificate({ subject: named('kubernetes'), ca: true })
    expect(verdict(await issue({ issuer: other }), other)).toBe('UNKNOWN_AUTHORITY')
  })

  test('of nothing is refused', () => {
    expect(verdict()).toBe('MALFORMED')
  })
})
