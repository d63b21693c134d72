import type { OptionTable } from '../../core/index.ts'

const users = 'Users of an OIDC provider'

const checkHttps = (text: string): string | undefined =>
  URL.canParse(text) && new URL(text).protocol === 'https:' ? undefined : 'must be an https URL'

const checkPair = (text: string): string | undefined =>
  /^[^=]+=/.test(text) ? undefined : 'must be of the form claim=value'

/** Options for users of an outside provider, with kube-apiserver's names and defaults. */
export const oidcOptions = {
  'oidc-issuer-url': {
    type: 'string',
    check: checkHttps,
    placeholder: 'URL',
    group: users,
    describe: 'provider whose id tokens are accepted; exactly the iss of its tokens',
  },
  'oidc-client-id': {
    type: 'string',
    placeholder: 'ID',
    group: users,
    describe: 'client that all tokens must have been issued for',
  },
  'oidc-username-claim': {
    type: 'string',
    default: 'sub',
    placeholder: 'CLAIM',
    group: users,
    describe: 'claim that is the user name',
  },
  'oidc-username-prefix': {
    type: 'string',
    placeholder: 'TEXT',
    defaultText: 'the issuer URL and #, none if the claim is email',
    group: users,
    describe: 'what stands before every user name; - for nothing',
  },
  'oidc-groups-claim': {
    type: 'string',
    placeholder: 'CLAIM',
    group: users,
    describe: 'claim with the groups, a string or a list of strings',
  },
  'oidc-groups-prefix': {
    type: 'string',
    placeholder: 'TEXT',
    group: users,
    describe: 'what stands before every group, so that none has the name of one of the cluster',
  },
  'oidc-required-claim': {
    type: 'string',
    repeatable: true,
    check: checkPair,
    placeholder: 'CLAIM=VALUE',
    group: users,
    describe: 'claim that a token must have with this value',
  },
  'oidc-signing-algs': {
    type: 'choice',
    choices: ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512'],
    repeatable: true,
    default: ['RS256'],
    group: users,
    describe: 'algorithm that tokens may be signed with',
  },
  'oidc-ca-file': {
    type: 'path',
    placeholder: 'FILE',
    defaultText: 'the public ones',
    group: users,
    describe: 'CA of the provider, PEM',
  },
} as const satisfies OptionTable
