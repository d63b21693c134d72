import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** What a finished program said. */
export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end, at most `timeoutMs`. */
export async function run(
  program: string,
  args: readonly string[],
  options: {
    readonly input?: string
    readonly env?: NodeJS.ProcessEnv
    readonly timeoutMs?: number
  } = {},
): Promise<Outcome> {
  const child = spawn(program, args, {
    env: { ...process.env, ...options.env },
    stdio: 'pipe',
    timeout: options.timeoutMs ?? 60_000,
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk) => {
    stdout += String(chunk)
  })
  child.stderr.on('data', (chunk) => {
    stderr += String(chunk)
  })
  child.stdin.on('error', () => {}) // it may end without reading its input
  child.stdin.end(options.input ?? '')
  const [code] = await once(child, 'close')
  return { code: code as number | null, stdout, stderr }
}

/** Stock kubectl, bound to one kubeconfig. */
export interface Kubectl {
  /** Runs to a good end and returns stdout; throws with stderr otherwise. */
  (args: string, input?: string): Promise<string>
  /** Runs and reports the outcome, good or bad. */
  outcome(args: string, input?: string): Promise<Outcome>
}

/** Splits a command line at spaces; single quotes keep a part whole, as in a shell. */
function words(line: string): string[] {
  return [...line.matchAll(/(?:'[^']*'|[^\s'])+/g)].map(([word]) => word.replaceAll("'", ''))
}

/** kubectl at `path` that talks to the cluster of `kubeconfig`, with a cache of its own. */
export function kubectlAt(path: string, kubeconfig: string, cacheDirectory: string): Kubectl {
  const outcome = (args: string, input?: string): Promise<Outcome> =>
    run(path, ['--kubeconfig', kubeconfig, '--cache-dir', cacheDirectory, ...words(args)], {
      ...(input !== undefined && { input }),
      env: { KUBECONFIG: '', KUBE_EDITOR: process.env['KUBE_EDITOR'] },
    })
  const runToGoodEnd = async (args: string, input?: string): Promise<string> => {
    const { code, stdout, stderr } = await outcome(args, input)
    if (code !== 0) throw new Error(`kubectl ${args} ended with ${code}:\n${stderr}${stdout}`)
    return stdout
  }
  return Object.assign(runToGoodEnd, { outcome })
}
