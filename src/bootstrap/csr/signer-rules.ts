import { signers } from '../../authz/index.ts'
import { isNodeName, machineIdentity, wellKnown } from '../../core/index.ts'
import type { CertificateRequest, CertificateUsage } from '../../pki/index.ts'

/** What one of Kubernetes' signers signs. */
export interface SignerRule {
  readonly usage: CertificateUsage
  /** Why the signer does not sign this; undefined if it does. */
  readonly problemOf: (asked: CertificateRequest, usages: readonly string[]) => string | undefined
}

type Check = readonly [isFine: boolean, problem: string]

const firstProblem = (checks: readonly Check[]): string | undefined =>
  checks.find(([isFine]) => !isFine)?.[1]

/** The usages may come in any order; key encipherment is what RSA keys need in old TLS. */
function usagesAre(usages: readonly string[], purpose: CertificateUsage): boolean {
  const asked = new Set(usages)
  asked.delete('key encipherment')
  return asked.size === 2 && asked.has('digital signature') && asked.has(purpose)
}

/** A name that no Node can have could only pass for that of another: by case, look-alikes, a dot at its end. */
const namesNode = (commonName: string): boolean =>
  isNodeName(commonName.slice(wellKnown.nodeUserPrefix.length))

/** Whose name it is: a node's, in the group of nodes, and nothing more. */
const nodeChecks = ({ subject }: CertificateRequest): readonly Check[] => [
  [
    subject.organizations.length === 1 && subject.organizations[0] === wellKnown.nodes,
    'the organization in the subject must be system:nodes and nothing else',
  ],
  [
    subject.commonName.startsWith(wellKnown.nodeUserPrefix) && namesNode(subject.commonName),
    'the common name must be system:node:<name of the node>',
  ],
  [
    subject.otherTypes.length === 0,
    'the subject must have an organization and a common name and nothing else',
  ],
]

const noAltNames = (asked: CertificateRequest): readonly Check[] => [
  [asked.dnsNames.length === 0, 'DNS names are not allowed'],
  [asked.ipAddresses.length === 0, 'IP addresses are not allowed'],
  ...noMailOrUri(asked),
]

const noMailOrUri = (asked: CertificateRequest): readonly Check[] => [
  [asked.emailAddresses.length === 0, 'email addresses are not allowed'],
  [asked.uris.length === 0, 'URIs are not allowed'],
  [asked.others === 0, 'alternative names of this kind are not allowed'],
]

const clientUsages = ['client auth', 'digital signature', 'key encipherment']

const rules: Readonly<Record<string, SignerRule>> = {
  [signers.kubeletClient]: {
    usage: 'client auth',
    problemOf: (asked, usages) =>
      firstProblem([
        ...nodeChecks(asked),
        ...noAltNames(asked),
        [
          usagesAre(usages, 'client auth'),
          'the usages must be digital signature and client auth, with or without key encipherment',
        ],
      ]),
  },
  [signers.kubeletServing]: {
    usage: 'server auth',
    problemOf: (asked, usages) =>
      firstProblem([
        ...nodeChecks(asked),
        ...noMailOrUri(asked),
        [
          asked.dnsNames.length + asked.ipAddresses.length > 0,
          'at least one DNS name or IP address is needed',
        ],
        [
          usagesAre(usages, 'server auth'),
          'the usages must be digital signature and server auth, with or without key encipherment',
        ],
      ]),
  },
  [signers.client]: {
    usage: 'client auth',
    problemOf: ({ subject, others }, usages) =>
      firstProblem([
        [
          !subject.commonName.startsWith(wellKnown.nodeUserPrefix) || namesNode(subject.commonName),
          'a common name that begins with system:node: must go on with the name of a node',
        ],
        [
          !subject.organizations.includes(wellKnown.masters),
          'certificates of system:masters are not signed: nobody could take them back',
        ],
        [
          !subject.organizations.includes(machineIdentity.loopbackGroup),
          "certificates of machines on the server's own loopback are made by `user create --machine` only",
        ],
        [others === 0, 'alternative names of this kind are not allowed'],
        [
          usages.includes('client auth') && usages.every((usage) => clientUsages.includes(usage)),
          'the usages must have client auth, and no others than digital signature and key encipherment',
        ],
      ]),
  },
}

/** The rule of a signer; undefined for signers that are somebody else's. */
export const signerRule = (signer: string): SignerRule | undefined =>
  Object.hasOwn(rules, signer) ? rules[signer] : undefined
