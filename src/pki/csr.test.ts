import 'reflect-metadata'
import { generateKeyPairSync, webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import { beforeAll, describe, expect, test } from 'vitest'
import { readCertificateFields } from './certificate.ts'
import { attribute, der, distinguishedName, labNow, named } from './certificate-lab.suite.ts'
import { altNames, ecKey, labCsr, signatureOid } from './csr-lab.suite.ts'
import { type CertificateAuthority, issueAuthorityCertificate } from './issue-certificate.ts'
import { generateEcKey, publicKeyPem } from './keys.ts'
import { CsrInvalid, parseCsr } from './parse-csr.ts'
import { signCsr } from './sign-csr.ts'

const dayMs = 24 * 60 * 60_000
const nodeName = distinguishedName(
  [attribute('O', 'system:nodes')],
  [attribute('CN', 'system:node:n1')],
)

let ca: CertificateAuthority
beforeAll(async () => {
  const key = await generateEcKey()
  const made = await issueAuthorityCertificate({
    commonName: 'kubernetes',
    key,
    now: labNow,
    lifetimeMs: 10 * dayMs,
  })
  ca = { name: 'CA', certificate: made.certificate, bundlePem: made.certPem, key }
})
const sign = (pem: string) =>
  signCsr(parseCsr(pem), { ca, usages: ['client auth'], now: labNow, lifetimeMs: dayMs })

describe('a request', () => {
  test('says whom it names, by which names and with which key', () => {
    const key = ecKey()
    const request = parseCsr(
      labCsr({
        subject: nodeName,
        key,
        extensions: [
          altNames(
            der(0x82, 'n1.example.org'),
            der(0x87, Buffer.from([10, 0, 0, 7])),
            der(0x87, Buffer.from('fd00000000000000000000000000000a', 'hex')),
            der(0x81, 'ops@example.org'),
            der(0x86, 'spiffe://example.org/n1'),
            der(0xa4, named('directory')),
          ),
        ],
      }),
    )
    expect(request).toMatchObject({
      subject: { commonName: 'system:node:n1', organizations: ['system:nodes'], otherTypes: [] },
      dnsNames: ['n1.example.org'],
      ipAddresses: ['10.0.0.7', 'fd00::a'],
      emailAddresses: ['ops@example.org'],
      uris: ['spiffe://example.org/n1'],
      others: 1,
      extendedKeyUsages: [],
    })
    expect(publicKeyPem(request.publicKey)).toBe(publicKeyPem(key))
  })

  test.each([
    [
      'RSA',
      {
        name: 'RSASSA-PKCS1-v1_5',
        hash: 'SHA-256',
        modulusLength: 2048,
        publicExponent: new Uint8Array([1, 0, 1]),
      },
    ],
    ['P-256', { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }],
    ['P-384', { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' }],
  ])('made by another library with a key of type %s is read', async (_name, algorithm) => {
    const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
    if (!('privateKey' in keys)) throw new TypeError('not a key pair')
    const made = await x509.Pkcs10CertificateRequestGenerator.create({
      name: 'O=system:nodes,CN=system:node:n1',
      keys,
      signingAlgorithm: algorithm,
      extensions: [
        new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: 'n1' }]),
        new x509.ExtendedKeyUsageExtension(['1.3.6.1.5.5.7.3.2']),
      ],
    })
    expect(parseCsr(made.toString('pem'))).toMatchObject({
      subject: { commonName: 'system:node:n1', organizations: ['system:nodes'] },
      dnsNames: ['n1'],
      extendedKeyUsages: ['1.3.6.1.5.5.7.3.2'],
    })
  })

  test('with an Ed25519 key is read', () => {
    const key = generateKeyPairSync('ed25519').privateKey
    const pem = labCsr({ subject: nodeName, key, hash: null, algorithm: signatureOid.ed25519 })
    expect(parseCsr(pem).publicKey.asymmetricKeyType).toBe('ed25519')
  })

  const rsa = (modulusLength: number) => generateKeyPairSync('rsa', { modulusLength }).privateKey
  test.each([
    [
      'is signed by another key',
      () => labCsr({ subject: nodeName, signer: ecKey() }),
      /not by the key/,
    ],
    [
      'is signed with SHA-1',
      () => labCsr({ subject: nodeName, hash: 'sha1', algorithm: signatureOid.ecdsaSha1 }),
      /1\.2\.840\.10045\.4\.1 is not supported/,
    ],
    [
      'names the algorithm of another key type',
      () => labCsr({ subject: nodeName, algorithm: signatureOid.rsaSha256 }),
      /not by the key/,
    ],
    [
      'has a short RSA key',
      () => labCsr({ subject: nodeName, key: rsa(1024), algorithm: signatureOid.rsaSha256 }),
      /1024 bits is too short/,
    ],
    [
      'has a key on an odd curve',
      () =>
        labCsr({
          subject: nodeName,
          key: generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey,
        }),
      /secp256k1 is not supported/,
    ],
    [
      'is a certificate',
      () => labCsr({ subject: nodeName, label: 'CERTIFICATE' }),
      /exactly one PEM block/,
    ],
    ['is two requests', () => labCsr({ subject: nodeName }).repeat(2), /exactly one PEM block/],
    ['is nothing', () => '', /exactly one PEM block/],
    [
      'is not DER',
      () => '-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----',
      /cannot be read/,
    ],
    [
      'has a line break in a DNS name',
      () => labCsr({ subject: nodeName, extensions: [altNames(der(0x82, 'a\nb'))] }),
      /cannot be read/,
    ],
    [
      'has an IP address of five bytes',
      () => labCsr({ subject: nodeName, extensions: [altNames(der(0x87, Buffer.alloc(5)))] }),
      /cannot be read/,
    ],
    [
      'has the same extension twice',
      () => labCsr({ subject: nodeName, extensions: [altNames(), altNames()] }),
      /cannot be read/,
    ],
  ])('that %s is refused', (_name, make, message) => {
    const pem = make()
    expect(() => parseCsr(pem)).toThrow(CsrInvalid)
    expect(() => parseCsr(pem)).toThrow(message)
  })

  test('with one byte changed is refused', () => {
    const pem = labCsr({ subject: named('jane') })
    const der = Buffer.from(pem.split('\n')[1] ?? '', 'base64')
    der[der.indexOf('jane')] = 'k'.charCodeAt(0)
    expect(() => parseCsr(pem.replace(/\n.+\n/, `\n${der.toString('base64')}\n`))).toThrow(
      /not by the key/,
    )
  })
})

describe('signing a request', () => {
  test('issues its subject and names for its key', async () => {
    const key = ecKey()
    const { certificate } = await sign(
      labCsr({ subject: nodeName, key, extensions: [altNames(der(0x82, 'n1'), der(0x81, 'a@b'))] }),
    )
    expect(certificate.subject).toBe('O=system:nodes\nCN=system:node:n1')
    expect(certificate.subjectAltName).toBe('DNS:n1, email:a@b')
    expect(certificate.checkPrivateKey(key)).toBe(true)
    expect(certificate.verify(ca.certificate.publicKey)).toBe(true)
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2'])
    expect(certificate.ca).toBe(false)
  })

  test.each([
    ['an attribute that we do not use', [[attribute('OU', 'x')], [attribute('CN', 'jane')]]],
    ['a line break and an equals sign', [[attribute('CN', 'jane\nO=system:masters')]]],
    [
      'several values in one part',
      [[attribute('O', 'a'), attribute('O', 'b')], [attribute('CN', 'j')]],
    ],
    ['a PrintableString', [[attribute('CN', 'jane', 0x13)]]],
    ['letters of any kind', [[attribute('CN', 'Jürgen 開')]]],
  ])('keeps a subject with %s', async (_name, sets) => {
    const pem = labCsr({ subject: distinguishedName(...sets) })
    const { certificate } = await sign(pem)
    expect(readCertificateFields(certificate.raw).subject).toEqual(parseCsr(pem).subject)
  })

  test('does not issue two common names, of which readers would take different ones', async () => {
    const pem = labCsr({
      subject: distinguishedName([attribute('CN', 'admin')], [attribute('CN', 'jane')]),
    })
    await expect(sign(pem)).rejects.toThrow('more than one common name')
  })

  test('does not issue kinds of names that it does not know', async () => {
    const pem = labCsr({ subject: nodeName, extensions: [altNames(der(0xa4, named('x')))] })
    await expect(sign(pem)).rejects.toThrow(CsrInvalid)
  })

  test('never outlives the CA', async () => {
    const request = parseCsr(labCsr({ subject: nodeName }))
    const { certificate } = await signCsr(request, {
      ca,
      usages: ['client auth'],
      now: labNow,
      lifetimeMs: 400 * dayMs,
    })
    expect(certificate.validTo).toBe(ca.certificate.validTo)
  })
})
