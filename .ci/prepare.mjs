// Run by npm after an installation. A developer gets what the tests need, and builds when there is something to build;
// what is installed from git (`npm install git+https://…`) is built here, as it has no dist.
import './embed.mjs';

// npm sets the variable for the clone that it makes a package of. Other package managers do not: for them it is always
// built.
const isDevelopers =
  process.env._PACOTE_NO_PREPARE_ === undefined && /^npm\//.test(process.env.npm_config_user_agent ?? 'npm/');
if (!isDevelopers) await import('./build.mjs');
