// Tools in JavaScript or TypeScript, served to any client of the Model Context Protocol.
//
// `npm install @modelcontextprotocol/sdk`
const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const { z } = require("zod");

const server = new McpServer({ name: "typescript", version: "1.0.0" });
server.registerTool(
  "reverse",
  { description: "Turns a text around.", inputSchema: { text: z.string() }, annotations: { readOnlyHint: true } },
  async ({ text }) => ({ content: [{ type: "text", text: [...text].reverse().join("") }] }),
);
server.connect(new StdioServerTransport());
