import { describe, expect, test } from 'vitest'
import { signers } from '../../authz/index.ts'
import { attribute, der, distinguishedName } from '../../pki/certificate-lab.suite.ts'
import { altNames, labCsr } from '../../pki/csr-lab.suite.ts'
import type { CertificateRequest } from '../../pki/index.ts'
import { parseCsr } from '../../pki/index.ts'
import { signerRule } from './signer-rules.ts'

const nodes = attribute('O', 'system:nodes')
const node = attribute('CN', 'system:node:n1')
const dns = der(0x82, 'n1.example')
const ip = der(0x87, Buffer.from([10, 0, 0, 1]))
const mail = der(0x81, 'a@example')
const uri = der(0x86, 'spiffe://n1')
const other = der(0x88, Buffer.from('2a03', 'hex'))

const asked = (attributes: readonly Buffer[], names: readonly Buffer[] = []): CertificateRequest =>
  parseCsr(
    labCsr({
      subject: distinguishedName(...attributes.map((each) => [each])),
      ...(names.length > 0 && { extensions: [altNames(...names)] }),
    }),
  )

const clientUse = ['digital signature', 'client auth']
const servingUse = ['digital signature', 'server auth']

const problem = (signer: string, request: CertificateRequest, usages: readonly string[]) =>
  signerRule(signer)?.problemOf(request, usages) ?? 'signed'

describe('the signer of node client certificates', () => {
  test.each([
    ['a plain request', [nodes, node], [], clientUse, 'signed'],
    ['key encipherment', [nodes, node], [], ['key encipherment', ...clientUse], 'signed'],
    ['usages in another order', [node, nodes], [], clientUse.toReversed(), 'signed'],
    ['no organization', [node], [], clientUse, 'organization'],
    ['two organizations', [nodes, attribute('O', 'x'), node], [], clientUse, 'organization'],
    ['nodes twice', [nodes, nodes, node], [], clientUse, 'organization'],
    ['masters', [attribute('O', 'system:masters'), node], [], clientUse, 'organization'],
    ["a person's name", [nodes, attribute('CN', 'alice')], [], clientUse, 'common name'],
    ['no node name', [nodes, attribute('CN', 'system:node:')], [], clientUse, 'common name'],
    ['a unit beside', [nodes, node, attribute('OU', 'x')], [], clientUse, 'nothing else'],
    ['two names', [nodes, attribute('CN', 'admin'), node], [], clientUse, 'nothing else'],
    ['a DNS name', [nodes, node], [dns], clientUse, 'DNS'],
    ['an IP address', [nodes, node], [ip], clientUse, 'IP'],
    ['an email address', [nodes, node], [mail], clientUse, 'email'],
    ['a URI', [nodes, node], [uri], clientUse, 'URI'],
    ['another kind of name', [nodes, node], [other], clientUse, 'alternative'],
    ['server auth', [nodes, node], [], servingUse, 'usages'],
    ['server auth as well', [nodes, node], [], [...clientUse, 'server auth'], 'usages'],
    ['no client auth', [nodes, node], [], ['digital signature'], 'usages'],
  ])('[DISC-S10] %s', (_name, attributes, names, usages, words) => {
    expect(problem(signers.kubeletClient, asked(attributes, names), usages)).toContain(words)
  })
})

describe('a node name that no Node can have [SEC-R1307]', () => {
  const variants = [
    'N1',
    'n1.',
    '.n1',
    'n1..x',
    ' n1',
    'n1 ',
    'n1\n',
    'n1\0',
    'n1\u200b',
    'n\u{2010}1',
    '\uff4e1',
    'n1/',
    'n1%00',
    '../n1',
    'n_1',
    '-n1',
    'n1-',
    'system:node:n1',
    'n1,n2',
    'a'.repeat(254),
  ]
  const uses = [
    [signers.kubeletClient, [], clientUse],
    [signers.kubeletServing, [dns], servingUse],
    [signers.client, [], clientUse],
  ] as const

  test.each(variants)('%j is signed by no signer', (name) => {
    const attributes = [nodes, attribute('CN', `system:node:${name}`)]
    for (const [signer, names, usages] of uses)
      expect(problem(signer, asked(attributes, names), usages)).toContain('common name')
  })

  test.each(['n1', '1', 'n-1.example.com', 'a'.repeat(253)])('%j is a node name', (name) => {
    const attributes = [nodes, attribute('CN', `system:node:${name}`)]
    for (const [signer, names, usages] of uses)
      expect(problem(signer, asked(attributes, names), usages)).toBe('signed')
  })
})

describe('the signer of node serving certificates', () => {
  test.each([
    ['a DNS name', [nodes, node], [dns], servingUse, 'signed'],
    ['an IP address', [nodes, node], [ip], ['key encipherment', ...servingUse], 'signed'],
    ['no name at all', [nodes, node], [], servingUse, 'at least one'],
    ['an email address', [nodes, node], [dns, mail], servingUse, 'email'],
    ['a URI', [nodes, node], [dns, uri], servingUse, 'URI'],
    ['client auth', [nodes, node], [dns], clientUse, 'usages'],
    ['a server that is no node', [nodes, attribute('CN', 'x')], [dns], servingUse, 'common name'],
  ])('[DISC-S10] %s', (_name, attributes, names, usages, words) => {
    expect(problem(signers.kubeletServing, asked(attributes, names), usages)).toContain(words)
  })
})

describe('the signer of client certificates', () => {
  const alice = attribute('CN', 'alice')
  test.each([
    ['a person', [alice, attribute('O', 'dev')], [], ['client auth'], 'signed'],
    ['all usages', [alice], [mail], ['key encipherment', ...clientUse], 'signed'],
    ['masters', [alice, attribute('O', 'system:masters')], [], clientUse, 'system:masters'],
    [
      'a machine on our loopback',
      [alice, attribute('O', 'system:sallyport:loopback-machines')],
      [],
      clientUse,
      'user create --machine',
    ],
    ['no client auth', [alice], [], ['digital signature'], 'client auth'],
    ['server auth', [alice], [], [...clientUse, 'server auth'], 'no others'],
    ['another kind of name', [alice], [other], clientUse, 'alternative'],
  ])('[DISC-S10] %s', (_name, attributes, names, usages, words) => {
    expect(problem(signers.client, asked(attributes, names), usages)).toContain(words)
  })
})

test.each(['example.com/signer', 'kubernetes.io/legacy-unknown', 'toString'])(
  '%s is not our signer',
  (name) => expect(signerRule(name)).toBeUndefined(),
)
