import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ProgramEnd } from './outcome-class.ts'

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** Runs a program, at a terminal if something is typed, and ends it and all its children after a while. */
export async function runPatiently(
  command: readonly string[],
  options: {
    readonly typed: string | undefined
    readonly patienceMs: number
    readonly cwd: string
    readonly env: Readonly<Record<string, string>>
  },
): Promise<ProgramEnd> {
  const { typed, patienceMs, cwd, env } = options
  const [program = '', ...args] =
    typed === undefined ? command : ['script', '-qefc', command.map(quote).join(' '), '/dev/null']
  const child = spawn(program, args, { cwd, env, stdio: 'pipe', detached: true })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      said += String(chunk)
    })
  const closed = once(child, 'close')
  child.stdin.on('error', () => {}) // it may end without reading
  if (typed === undefined) child.stdin.end()
  else child.stdin.write(typed)
  let waited = false
  const endGroup = (): void => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL')
    } catch {
      // Nobody of the group is left.
    }
  }
  const impatient = setTimeout(() => {
    waited = true
    endGroup()
  }, patienceMs)
  const [code] = (await once(child, 'exit')) as [number | null]
  clearTimeout(impatient)
  endGroup()
  // What was said last may still be on its way, and a daemon may hold the pipes for ever.
  await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 500))])
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
  return { code: waited ? undefined : code, said }
}
