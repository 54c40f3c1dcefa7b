// What a test script needs of the machine, and what it prints where that is missing.
import { spawnSync } from 'node:child_process';

/** Whether a program is there, and ends well with these arguments. */
export function has(program, ...args) {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

/** Ends the script well, and says that nothing was tested. @param lines of up to 77 characters */
export function skip(...lines) {
  const width = 79;
  const box = [
    `┌${'─'.repeat(width)}┐`,
    ...lines.map((line) => `│ ${line.padEnd(width - 2)} │`),
    `└${'─'.repeat(width)}┘`,
  ];
  console.log(`\n${box.join('\n')}\n`);
  process.exit(0);
}
