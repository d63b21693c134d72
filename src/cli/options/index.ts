export type { CommandShape } from './help.ts'
export { helpText, markdownReference } from './help.ts'
export { asksForHelp, type OptionSources, parseOptions } from './parse.ts'
