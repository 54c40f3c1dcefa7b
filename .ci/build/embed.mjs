// Generates the source files that embed others: the Redis scripts, and the page of the dashboard.
import './embed-lua.mjs';
import './embed-page.mjs';
