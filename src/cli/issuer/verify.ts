import {
  ApiError,
  CommandFailed,
  type OptionTable,
  SallyportError,
  visibleLine,
  WrongUsage,
} from '../../core/index.ts'
import type { Explanation, VerifierOptions } from '../../issuer/relying-party/index.ts'
import { certificateAuthorityOption, readCaFile } from '../ca-file.ts'
import { outputOption } from '../cluster-source.ts'
import { defineCommand, FailedWithResult } from '../command.ts'
import type { Io } from '../io.ts'
import { textTable } from '../text-table.ts'
import { readTokenInput } from './token-input.ts'

const options = {
  'token-file': {
    type: 'path',
    describe: 'file to read the token from, so that it is in no list of processes',
    group: 'Token',
    placeholder: 'FILE',
  },
  audience: {
    type: 'string',
    repeatable: true,
    describe: 'who the token must be for',
    group: 'Token',
    placeholder: 'NAME',
    defaultText: 'whoever it names, and then nothing is proven by it',
  },
  issuer: {
    type: 'string',
    describe: 'who the token must be of',
    group: 'Issuer',
    placeholder: 'URL',
    defaultText: 'whoever it names, on public addresses only, and then nothing is proven by it',
  },
  ...certificateAuthorityOption,
  kubeconfig: {
    type: 'path',
    describe: 'read the documents from the API server of this kubeconfig, whatever their address',
    group: 'Issuer',
    placeholder: 'FILE',
  },
  context: {
    type: 'string',
    describe: 'context of that kubeconfig',
    group: 'Issuer',
    placeholder: 'NAME',
    defaultText: 'the current one',
  },
  ...outputOption,
} as const satisfies OptionTable

interface Row {
  readonly check: string
  readonly outcome: string
  readonly detail: string
  readonly code?: string
}

/** What no check can tell from outside, or was not told to. */
function unknowns(values: {
  readonly issuer?: string | undefined
  readonly audience: readonly string[]
}): Row[] {
  const unknown = (check: string, detail: string): Row => ({ check, outcome: 'unknown', detail })
  return [
    ...(values.issuer === undefined
      ? [
          unknown(
            'trust',
            'the issuer is the one that the token names; give --issuer to demand yours',
          ),
        ]
      : []),
    ...(values.audience.length === 0
      ? [unknown('recipient', 'nobody was named; give --audience to demand that it is for you')]
      : []),
    unknown(
      'still alive',
      'whether its Pod and ServiceAccount still exist is not to be seen from outside; a TokenReview tells',
    ),
  ]
}

/** Fetches both documents from an API server, with the credentials of a kubeconfig. */
async function documentsOfCluster(
  path: string,
  context: string | undefined,
  io: Io,
): Promise<NonNullable<VerifierOptions['fetch']>> {
  const { createKubeClient, transportFromKubeconfig } = await import('../../client/index.ts')
  const { discoveryPath, jwksPath } = await import('../../issuer/documents/index.ts')
  const { loadContext } = await import('../../kubeconfig/index.ts')
  const { pluginHostOf } = await import('../cluster-source.ts')
  const { IssuerUnavailable } = await import('../../issuer/relying-party/index.ts')
  const sources = { explicitPath: path, kubeconfig: undefined, home: io.homeDirectory }
  const found = await loadContext(sources, context)
  const host = { plugins: await pluginHostOf(io), proxyEnv: io.env }
  const client = createKubeClient({ transport: await transportFromKubeconfig(found, host) })
  const headers = { accept: 'application/json, application/jwk-set+json' }
  return async ({ pathname }) => {
    const asked = pathname.endsWith(discoveryPath) ? discoveryPath : jwksPath
    const answer = client.request({ method: 'GET', path: asked, headers }, io.drain)
    const { body } = await answer.catch((cause: unknown) => {
      if (!(cause instanceof SallyportError)) throw cause
      const code = cause instanceof ApiError ? 'bad-status' : 'unreachable'
      throw new IssuerUnavailable(code, `by the kubeconfig: ${cause.message}`, { cause })
    })
    return { body }
  }
}

async function optionsFor(
  token: string,
  values: {
    readonly issuer?: string | undefined
    readonly audience: readonly string[]
    readonly certificateAuthority?: string | undefined
    readonly kubeconfig?: string | undefined
    readonly context?: string | undefined
  },
  io: Io,
): Promise<VerifierOptions> {
  const { readUnverifiedClaims } = await import('../../issuer/doctor/index.ts')
  const unverified = readUnverifiedClaims(token)
  const issuer = values.issuer ?? unverified.issuer
  if (issuer === undefined)
    throw new CommandFailed('ISSUER_UNKNOWN', 'the token has no issuer', {
      hint: 'give --issuer, and all that is wrong with the token is told',
    })
  const audience = values.audience.length > 0 ? values.audience : unverified.audiences
  const { kubeconfig, context } = values
  return {
    issuer,
    // A token without an audience is rejected anyway.
    audience: audience.length > 0 ? audience : 'nobody',
    caPem: await readCaFile(values.certificateAuthority),
    // Private addresses are allowed for an issuer from the command line, not for one from the token.
    allowPrivateAddresses: values.issuer !== undefined,
    ...(kubeconfig !== undefined && { fetch: await documentsOfCluster(kubeconfig, context, io) }),
  }
}

function shown({ checks }: Explanation, more: readonly Row[]): string {
  const rows: readonly Row[] = [...checks, ...more]
  return textTable(
    ['CHECK', 'OUTCOME', 'DETAIL'],
    rows.map(({ check, outcome, detail }) => [check, outcome, visibleLine(detail)]),
  )
}

/** `sallyport issuer verify`. */
export const issuerVerifyCommand = defineCommand({
  command: 'sallyport issuer verify',
  summary: 'Verify a token as a relying party outside does, and explain every check',
  arguments: [{ name: 'TOKEN', describe: 'the token, or - to read it from standard input' }],
  options,
  examples: [
    {
      line: 'sallyport issuer verify - --audience vault --issuer https://issuer.example',
      does: 'every check of a token from standard input; exit 1 if one fails',
    },
    {
      line: 'sallyport issuer verify --token-file token --kubeconfig admin.kubeconfig',
      does: 'by the documents of a cluster that shows them to its own only',
    },
  ],
  run: async ({ options: values, args: [argument] }, io) => {
    const token = await readTokenInput({ argument, file: values.tokenFile })
    const { createServiceAccountVerifier } = await import('../../issuer/relying-party/index.ts')
    const verifierOptions = await optionsFor(token, values, io)
    const verifier = usable(() => createServiceAccountVerifier(verifierOptions), values.issuer)
    const explanation = await verifier.explain(token)
    const more = unknowns(values)
    const { accepted, checks } = explanation
    const result = { accepted, issuer: verifierOptions.issuer, checks: [...checks, ...more] }
    if (values.output === 'text') io.stdout(shown(explanation, more))
    else if (accepted) io.stdout(`${JSON.stringify(result)}\n`)
    const failed = checks.find(({ outcome }) => outcome === 'failed')
    if (accepted || !failed) return
    throw new FailedWithResult(
      {
        code: 'TOKEN_NOT_ACCEPTED',
        message: `the token is not accepted: ${failed.detail}`,
        hint: hints[failed.code ?? ''] ?? 'the table says which checks failed',
      },
      result,
    )
  },
})

const hints: Readonly<Record<string, string>> = {
  'untrusted-certificate': 'give the CA of the issuer: --certificate-authority FILE',
  'blocked-address': 'name the issuer yourself if it is in a private network: --issuer URL',
  'bad-status':
    'are the documents public? if not: --kubeconfig FILE, of a user who may read them (ClusterRole system:service-account-issuer-discovery)',
  'wrong-issuer': 'the issuer must be the same byte for byte, slashes included',
  'wrong-audience': 'ask for a token with --audience, and give the same name here',
}

/** An issuer that cannot be discovered is a wrong call, or the fault of whoever made the token. */
function usable<Result>(make: () => Result, demanded: string | undefined): Result {
  try {
    return make()
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause
    if (demanded !== undefined) throw new WrongUsage(`--${cause.message}`, { cause })
    throw new CommandFailed(
      'ISSUER_UNDISCOVERABLE',
      `nobody outside can discover the issuer that the token names: ${cause.message}`,
      { cause, hint: 'a TokenReview at its cluster tells whether the token is good' },
    )
  }
}
